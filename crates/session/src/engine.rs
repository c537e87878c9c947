// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of the machines that sessions boot and restore. The program chooses it once. The engine changes no result
//! and no cycle.
//!
//! The maker of the translator comes from the program, so that this crate does not depend on the translator.

use std::sync::OnceLock;

use anyhow::{Result, bail};
use arm::Bus;
use arm::engine::Engine;
use arm::model::Core;
use board::bus::SystemBus;
use board::{BoardBus, Machine};

/// Choice of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// The translator where the host and the core have one, otherwise the interpreter.
    #[default]
    Auto,
    /// The interpreter, which defines the behaviour.
    Interpreter,
    /// The translator, which makes code for the host.
    Translator,
}

/// A translator, or the reason why the host has none.
pub type Made = Result<Box<dyn Engine<SystemBus>>, String>;

/// Makes a translator.
#[derive(Clone, Copy)]
pub struct Maker {
    /// Whether the translator knows a core.
    pub knows: fn(&Core) -> bool,
    /// Makes the translator for a core that it knows. Fails with the reason if the host has none.
    pub make: fn(&'static Core) -> Made,
}

static CHOSEN: OnceLock<(Choice, Maker)> = OnceLock::new();
static TOLD: OnceLock<()> = OnceLock::new();

/// Chooses the engine of all machines that are made later. Only the first call has an effect.
///
/// # Errors
///
/// Fails if the choice is the translator, and the host has none.
pub fn choose(choice: Choice, maker: Maker) -> Result<()> {
    if choice == Choice::Translator {
        let core = arm::model::ALL.iter().find(|core| (maker.knows)(core));
        if let Some(Err(reason)) = core.map(|core| (maker.make)(core)) {
            bail!("--engine translator: {reason}");
        }
    }
    let _ = CHOSEN.set((choice, maker));
    Ok(())
}

/// Checks that a board's core has the chosen engine.
///
/// # Errors
///
/// Fails if the choice is the translator, and the translator does not know the core.
pub fn check(core: &Core) -> Result<()> {
    match CHOSEN.get() {
        Some((choice, maker)) => check_choice(*choice, *maker, core),
        None => Ok(()),
    }
}

fn check_choice(choice: Choice, maker: Maker, core: &Core) -> Result<()> {
    if choice != Choice::Translator || (maker.knows)(core) {
        return Ok(());
    }
    let known = arm::model::ALL.iter().filter(|core| (maker.knows)(core));
    let known: Vec<_> = known.map(|core| core.name).collect();
    bail!(
        "--engine translator: it does not know the core {}, only {}; use --engine auto",
        core.name,
        known.join(" and ")
    );
}

/// Gives a machine the chosen engine. Without a choice, or without a translator for the machine's core, the machine
/// keeps the interpreter.
pub fn equip(mut machine: Machine) -> Machine {
    let core = machine.spec().core.core;
    let Some((choice, maker)) = CHOSEN.get() else {
        return machine;
    };
    if *choice == Choice::Interpreter {
        return machine;
    }
    let made = match (maker.knows)(core) {
        true => (maker.make)(core),
        false => Err(format!("it does not know the core {}", core.name)),
    };
    match made {
        Ok(engine) => {
            machine.cpu_mut().set_engine(Some(engine));
        }
        Err(reason) => {
            TOLD.get_or_init(|| {
                eprintln!("note: no translator: {reason}; the interpreter is slower");
            });
        }
    }
    machine
}

/// Name of a machine's engine.
pub fn name<B: BoardBus + Bus>(machine: &Machine<B>) -> &'static str {
    match machine.cpu().has_engine() {
        true => "translator",
        false => "interpreter",
    }
}

#[cfg(test)]
mod tests {
    use arm::model::{ARM920T, ARM926EJS, IXP42X};

    use super::*;

    #[test]
    fn the_translator_is_refused_for_a_core_that_it_does_not_know() {
        let maker = Maker {
            knows: |core| *core != IXP42X,
            make: |_| Err("no translator".into()),
        };
        let check = |choice, core| check_choice(choice, maker, core).map_err(|e| e.to_string());
        assert_eq!(check(Choice::Translator, &ARM920T), Ok(()));
        assert_eq!(check(Choice::Auto, &IXP42X), Ok(()));
        let refused = check(Choice::Translator, &IXP42X).unwrap_err();
        let known = format!("only {} and {};", ARM926EJS.name, ARM920T.name);
        assert!(
            refused.contains(IXP42X.name) && refused.contains(&known),
            "{refused}"
        );
    }
}
