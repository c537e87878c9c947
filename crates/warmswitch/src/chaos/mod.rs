// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chaos: runs with interrupts at random moments ([`watch::chaos`]). A seed determines the moments. A campaign runs
//! many seeds.
//!
//! At each interrupt, the guest program `chaos` gives the processor to another task. `chaos` runs the user's command,
//! or `mm_chaos` with the seed's program.

pub mod draw;
pub mod grammar;
pub mod places;
pub mod program;
pub mod range;
pub mod replay;
pub mod run;
pub mod seeds;
pub mod store;
pub mod table;
pub mod tried;
pub mod unchecked;

use anyhow::Result;

use base::shell;
use board::BoardSpec;
use grammar::Grammar;
use places::Weights;
use program::Program;
use results::runs::markers::Typed;
use session::boot::Prepared;
use session::target::Target;
use supply::added::Added;
use supply::image::guest;

/// Guest program that gives the processor to another task at each interrupt.
const CHAOS: &str = "chaos";
/// Guest program that runs random programs.
pub const MM_CHAOS: &str = "mm_chaos";
/// Maximum number of bytes of a program in one typed line. The guest's line editor takes at most 1,024 bytes per line.
const PIECE: usize = 700;

/// Command to run under chaos.
pub enum Command {
    /// The user's command.
    Own(Vec<String>),
    /// `mm_chaos` with the program of the seed.
    Drawn(Box<Grammar>),
    /// `mm_chaos` with this program.
    Given(Box<Grammar>, Program),
}

impl Command {
    /// Interprets the words after `--`. The word `mm_chaos` alone selects the random program of each seed.
    pub fn of(words: &[String]) -> Result<Command> {
        match words {
            [one] if one == MM_CHAOS => Ok(Command::Drawn(Box::new(Grammar::load()?))),
            [first, text] if first == MM_CHAOS && !text.starts_with('-') => {
                let program = Program::parse(text)?;
                Ok(Command::Given(Box::new(Grammar::load()?), program))
            }
            words => {
                shell::typed(words)?;
                Ok(Command::Own(words.to_vec()))
            }
        }
    }

    /// Returns the program that `mm_chaos` runs for a seed. Returns `None` for the user's own command.
    pub fn program(&self, seed: u64) -> Option<Program> {
        match self {
            Command::Own(_) => None,
            Command::Drawn(grammar) => Some(draw::program(grammar, seed)),
            Command::Given(_, program) => Some(program.clone()),
        }
    }

    /// Returns the lines to type for a seed.
    pub fn work(&self, seed: u64) -> Result<SeedCommand> {
        match self {
            Command::Own(words) => {
                let command = shell::typed(words)?;
                Ok(SeedCommand {
                    typed: Typed::own(&format!("{CHAOS} {seed} {command} </dev/null")),
                    zones: Weights::new(),
                })
            }
            Command::Drawn(grammar) => Ok(SeedCommand::of(
                grammar,
                seed,
                &draw::program(grammar, seed),
            )),
            Command::Given(grammar, program) => Ok(SeedCommand::of(grammar, seed, program)),
        }
    }

    /// Returns the lines to type for a seed if `mm_chaos` runs `program`. Returns `None` for the user's own command.
    pub fn work_of(&self, seed: u64, program: &Program) -> Option<SeedCommand> {
        match self {
            Command::Own(_) => None,
            Command::Drawn(grammar) | Command::Given(grammar, _) => {
                Some(SeedCommand::of(grammar, seed, program))
            }
        }
    }

    /// Returns the grammar that generates the programs of seeds. The hash that identifies the stored results includes
    /// the grammar.
    pub fn grammar(&self) -> String {
        match self {
            Command::Drawn(grammar) | Command::Given(grammar, _) => format!("{grammar:?}"),
            Command::Own(_) => String::new(),
        }
    }

    /// Returns whether the command checks its own data. If it does, a nonzero exit status means wrong data.
    pub fn checks_itself(&self) -> bool {
        !matches!(self, Command::Own(_))
    }
}

/// The lines to type for one seed.
pub struct SeedCommand {
    pub typed: Typed,
    /// Weights of the kernel's zones in which interrupts are more likely. If the map is empty, all zones have equal
    /// weights.
    pub zones: Weights,
}

impl SeedCommand {
    fn of(grammar: &Grammar, seed: u64, program: &Program) -> SeedCommand {
        SeedCommand {
            typed: typed(seed, program),
            zones: draw::zones(grammar, program),
        }
    }
}

/// Returns the shell lines that build a program's text and run it.
fn typed(seed: u64, program: &Program) -> Typed {
    let text = program.text();
    let mut typed = Typed::own(&format!("{CHAOS} {seed} {MM_CHAOS} \"$P\" </dev/null"));
    let mut lines = "P=\n".to_string();
    let bytes = text.as_bytes();
    for piece in bytes.chunks(PIECE) {
        // The text needs no escaping, because it is ASCII without quotes.
        lines.push_str(&format!("P=$P'{}'\n", String::from_utf8_lossy(piece)));
    }
    typed.line = lines + &typed.line;
    typed
}

/// Prepares the target with the guests that chaos needs.
pub fn prepare(target: &Target, board: &BoardSpec) -> Result<Prepared> {
    let mut recipe = target.recipe()?;
    recipe.reset_on_panic = true;
    for name in [CHAOS, MM_CHAOS] {
        recipe.added.push(Added::program(guest::alone(name)?));
    }
    recipe.prepare(board)
}
