// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-open ranges of seeds, like `0..200`.

use std::fmt;
use std::str::FromStr;

/// A range of at least one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// First seed.
    pub from: u64,
    /// The seed after the last one.
    pub to: u64,
}

/// Maximum number of seeds in a range. At one second per seed, this number of seeds takes 12 days.
const MOST: u64 = 1_000_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let parts = text
            .split_once("..")
            .and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let Some((from, to)) = parts else {
            return Err("not a range of seeds like 0..200".to_string());
        };
        match to {
            _ if to <= from => Err(format!(
                "the range has no seed: the end must be larger than {from}"
            )),
            _ if to - from > MOST => Err(format!("a range has at most {MOST} seeds")),
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
