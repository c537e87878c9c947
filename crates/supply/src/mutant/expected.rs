// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checker's expected result for a mutant.

use arm::Victims;
use serde::Deserialize;

use super::Mutant;

/// Expectation with victims that are chosen late. Needed only if it differs from the expectation with random victims.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Late {
    /// No report is expected. The text is the reason.
    Survives(String),
    /// Chance decides whether there is a report. The text is the reason.
    Chance(String),
    /// This test causes a report, although no test does so with random victims.
    Test(String),
}

/// Expected result for a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// This test causes a report.
    Test(&'a str),
    /// The quick suite causes a report.
    Suite,
    /// Chance decides whether the quick suite causes a report. The text is the reason.
    Chance(&'a str),
    /// No report is expected. The text is the reason.
    Nothing(&'a str),
}

impl Mutant {
    /// Returns the expected result for a way of choosing victims.
    pub fn expected(&self, victims: Victims) -> Expected<'_> {
        let late = self.late.as_ref().filter(|_| victims == Victims::Late);
        match (late, &self.test) {
            (Some(Late::Survives(why)), _) => Expected::Nothing(why),
            (Some(Late::Chance(why)), _) => Expected::Chance(why),
            (Some(Late::Test(test)), _) | (_, Some(test)) => Expected::Test(test),
            _ if self.suite.is_some() => Expected::Suite,
            _ => match &self.chance {
                Some(why) => Expected::Chance(why),
                None => Expected::Nothing(self.survives.as_deref().unwrap_or_default()),
            },
        }
    }
}
