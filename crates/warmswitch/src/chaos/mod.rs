// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs in which interrupts come where a seed says ([`watch::chaos`]), and what many seeds came to.
//!
//! The guest `chaos` turns an interrupt into another task's turn. What runs under it is the user's command, or
//! `mm_chaos` with the program of the seed.

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

/// The guest that hands the processor on.
const CHAOS: &str = "chaos";
/// The guest that runs random programs.
pub const MM_CHAOS: &str = "mm_chaos";
/// Bytes of a program that one typed line has: the guest's line editor takes no more than 1,024 in all.
const PIECE: usize = 700;

/// What is to run under chaos.
pub enum Command {
    /// These words.
    Own(Vec<String>),
    /// The program of the seed.
    Drawn(Box<Grammar>),
    /// This program.
    Given(Box<Grammar>, Program),
}

impl Command {
    /// What the words behind `--` mean: `mm_chaos` alone is the seed's program.
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

    /// The program of a seed, if it is one of `mm_chaos`.
    pub fn program(&self, seed: u64) -> Option<Program> {
        match self {
            Command::Own(_) => None,
            Command::Drawn(grammar) => Some(draw::program(grammar, seed)),
            Command::Given(_, program) => Some(program.clone()),
        }
    }

    /// What a seed does.
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

    /// The same of another program of `mm_chaos`.
    pub fn work_of(&self, seed: u64, program: &Program) -> Option<SeedCommand> {
        match self {
            Command::Own(_) => None,
            Command::Drawn(grammar) | Command::Given(grammar, _) => {
                Some(SeedCommand::of(grammar, seed, program))
            }
        }
    }

    /// What decides the programs of seeds.
    pub fn grammar(&self) -> String {
        match self {
            // As it was read.
            Command::Drawn(grammar) | Command::Given(grammar, _) => format!("{grammar:?}"),
            Command::Own(_) => String::new(),
        }
    }

    /// Whether its status says that data was wrong.
    pub fn checks_itself(&self) -> bool {
        !matches!(self, Command::Own(_))
    }
}

/// What runs in one seed.
pub struct SeedCommand {
    pub typed: Typed,
    /// Of the kernel, where interrupts come by preference; none are all.
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

/// A program's lines for the shell.
fn typed(seed: u64, program: &Program) -> Typed {
    let text = program.text();
    let mut typed = Typed::own(&format!("{CHAOS} {seed} {MM_CHAOS} \"$P\" </dev/null"));
    let mut lines = "P=\n".to_string();
    let bytes = text.as_bytes();
    for piece in bytes.chunks(PIECE) {
        // The text is ASCII without quotes.
        lines.push_str(&format!("P=$P'{}'\n", String::from_utf8_lossy(piece)));
    }
    typed.line = lines + &typed.line;
    typed
}

/// The target with the guests that chaos needs.
pub fn prepare(target: &Target, board: &BoardSpec) -> Result<Prepared> {
    let mut recipe = target.recipe()?;
    recipe.reset_on_panic = true;
    for name in [CHAOS, MM_CHAOS] {
        recipe.added.push(Added::program(guest::alone(name)?));
    }
    recipe.prepare(board)
}
