// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to come of a mutant under the checker.

use arm::Victims;
use serde::Deserialize;

use super::Mutant;

/// How a mutant fares with victims that are chosen late, if not as with random ones.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Late {
    /// Not reported: why.
    Survives(String),
    /// Chance whether it is: why.
    Chance(String),
    /// This test makes a report, though none does with random victims.
    Test(String),
}

/// What is expected of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// This test makes a report.
    Test(&'a str),
    /// The quick suite does.
    Suite,
    /// The quick suite may, and why that is chance.
    Chance(&'a str),
    /// There is none, for this reason.
    Nothing(&'a str),
}

impl Mutant {
    /// What is expected with a way of choosing victims.
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
