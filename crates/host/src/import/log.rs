// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of `warmswitch-target` from a console or a connection.

use anyhow::Result;

use super::machine::Machine;
use super::{Form, documents, lines_with};
use crate::log;

/// Log of `warmswitch-target`.
pub const FORM: Form = Form {
    name: "a log of warmswitch-target",
    program: "warmswitch host",
    // All calls in a log together form one result.
    begins: |text| {
        lines_with(text, |line| line.contains(log::START))
            .into_iter()
            .take(1)
            .collect()
    },
    read: |text, _| read(text),
};

fn read(text: &str) -> Result<Machine> {
    let log = log::read(text)?;
    let documents = log.tools.into_iter().map(|(_, document, _)| document);
    documents::read(documents.collect(), log.notes)
}
