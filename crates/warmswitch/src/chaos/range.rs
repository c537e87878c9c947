// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeds from one to before another: `0..200`.

use std::fmt;
use std::str::FromStr;

/// At least one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
}

/// More than anybody waits for.
const MOST: u64 = 1_000_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let parts = text
            .split_once("..")
            .and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let Some((from, to)) = parts else {
            return Err("not two numbers like 0..200".to_string());
        };
        match to {
            _ if to <= from => Err(format!(
                "there is no seed from {from} to before {to}: the end is the one behind the last"
            )),
            _ if to - from > MOST => Err(format!("more than {MOST} seeds")),
            _ => Ok(Seeds { from, to }),
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_first_seed_and_one_behind_its_last() {
        assert_eq!("3..5".parse(), Ok(Seeds { from: 3, to: 5 }));
        for bad in [
            "",
            "5",
            "..",
            "5..",
            "..5",
            "5..5",
            "6..5",
            "-1..5",
            "0..2000000",
            "a..b",
            "0..=5",
        ] {
            assert!(bad.parse::<Seeds>().is_err(), "{bad}");
        }
    }
}
