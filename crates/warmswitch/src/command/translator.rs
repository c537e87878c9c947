// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the engine. Without the feature `engine`, the program has only the interpreter.

use anyhow::Result;
use session::engine::Choice;

/// Chooses the engine of all machines that are made later.
///
/// # Errors
///
/// Fails if the choice is the translator, and the host has none.
#[cfg(feature = "engine")]
pub fn choose(choice: Choice) -> Result<()> {
    let translator = session::engine::Maker {
        knows: engine::knows,
        make: engine::translator,
    };
    session::engine::choose(choice, translator)
}

/// Checks the choice. Machines have the interpreter unless an engine was chosen.
///
/// # Errors
///
/// Fails if the choice is the translator.
#[cfg(not(feature = "engine"))]
pub fn choose(choice: Choice) -> Result<()> {
    if choice == Choice::Translator {
        anyhow::bail!("--engine translator: this program was built without the translator");
    }
    Ok(())
}
