// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions and addresses as users name them.

use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

use crate::coherence::replay::At;
use base::suggest::did_you_mean;
use supply::symbols::Symbols;

/// An instruction to stop at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this cycle, as a report has it.
    Then(At),
    /// By its address.
    Pc(u32),
    /// So many bytes behind the beginning of a function.
    Function(String, u32),
    /// Where a register points to.
    Register(usize),
}

/// Memory that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// At this virtual address.
    Va(u32),
    /// So many bytes behind the one in a register, when the board stands before the instruction.
    Register(usize, u32),
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// r0 to r15, sp, lr, pc.
fn register(text: &str) -> Option<usize> {
    let named = ["sp", "lr", "pc"].iter().position(|name| *name == text);
    let number = || text.strip_prefix('r')?.parse().ok().filter(|n| *n < 16);
    named.map(|n| n + 13).or_else(number)
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if text.contains('@') {
            return text.parse().map(Place::Then);
        }
        if let Some(n) = register(text) {
            return Ok(Place::Register(n));
        }
        if text.starts_with("0x") {
            let pc = hexadecimal(text);
            return pc.map(Place::Pc).ok_or("not a 32-bit address".to_string());
        }
        let (name, offset) = match text.split_once('+') {
            Some((name, offset)) => (name, hexadecimal(offset)),
            None => (text, Some(0)),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        match offset {
            Some(offset) if !name.is_empty() && name.chars().all(is_name) => {
                Ok(Place::Function(name.to_string(), offset))
            }
            _ => Err(
                "not PC, PC@CYCLE, @FILE or SYMBOL[+OFFSET], like 0x000103f4, \
                 0x000103f4@230233286 or load_word+0x4"
                    .to_string(),
            ),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let (name, offset) = match text.split_once('+') {
            Some((name, offset)) => (name, hexadecimal(offset)),
            None => (text, Some(0)),
        };
        let in_register = || Some(Address::Register(register(name)?, offset?));
        let va = hexadecimal(text).map(Address::Va);
        va.or_else(in_register).ok_or(
            "not a virtual address like 0xb6f4b340, nor a register like r0 or r0+0x340".to_string(),
        )
    }
}

/// The functions that may be named: the kernel's, and those of the user's programs.
pub struct Functions {
    /// Each with what it is of.
    all: Vec<(String, Symbols)>,
}

impl Functions {
    /// The kernel's come first.
    pub fn new(all: Vec<(String, Symbols)>) -> Functions {
        Functions { all }
    }

    /// Where a function begins.
    pub fn address(&self, option: &str, name: &str) -> Result<u32> {
        let found = self.all.iter().find_map(|(_, s)| s.address(name));
        found.ok_or_else(|| anyhow!("{option} {name}: no such function{}", self.near(name)))
    }

    fn near(&self, name: &str) -> String {
        let functions = self.all.iter().flat_map(|(_, s)| s.functions());
        let names: Vec<&str> = functions.map(|(_, name)| name.as_str()).collect();
        // There are thousands: all of them are of no help.
        match did_you_mean(name, &names) {
            near if near.contains("did you mean") => near,
            _ => {
                let of: Vec<&str> = self.all.iter().map(|(of, _)| of.as_str()).collect();
                format!(" in {}", of.join(", "))
            }
        }
    }

    /// `load_word+0x4`, if the address is in a function.
    pub fn name(&self, pc: u32) -> Option<String> {
        let mut all = self.all.iter();
        all.find_map(|(_, s)| s.name(pc))
    }

    /// The address that a place means, of which a register is none before the board stands somewhere.
    pub fn pc(&self, option: &str, place: &Place) -> Result<u32> {
        match place {
            Place::Then(at) => Ok(at.pc),
            Place::Pc(pc) => Ok(*pc),
            Place::Function(name, offset) => {
                let begin = self.address(option, name)?;
                Ok(begin.wrapping_add(*offset))
            }
            Place::Register(_) => bail!("{option}: a register is a place for --until only"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_a_cycle_of_one_a_function_or_a_register() {
        let at = At {
            pc: 0x103f4,
            cycle: 7,
        };
        for (text, place) in [
            ("0x000103f4@7", Place::Then(at)),
            ("0x103f4", Place::Pc(0x103f4)),
            ("load_word", Place::Function("load_word".into(), 0)),
            (
                "set_ptes.part.0+0x1c",
                Place::Function("set_ptes.part.0".into(), 28),
            ),
            ("lr", Place::Register(14)),
        ] {
            assert_eq!(text.parse(), Ok(place), "{text}");
        }
        for bad in ["", "0xg", "+4", "f+4", "103f4@7", "a b", "0x123456789"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_is_a_number_or_in_a_register() {
        assert_eq!("0xb6f4b340".parse(), Ok(Address::Va(0xb6f4_b340)));
        assert_eq!("r12".parse(), Ok(Address::Register(12, 0)));
        assert_eq!("sp+0x10".parse(), Ok(Address::Register(13, 16)));
        for bad in ["", "r16", "r1+", "r1+4", "0x10+0x4", "b6f4b340", "-1", "rx"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_function_that_is_not_there_is_answered_with_the_nearest_one() {
        let of =
            |name: &str, functions: &[(u32, &str)]| (name.to_string(), Symbols::by_hand(functions));
        let known = Functions::new(vec![
            of("the kernel", &[(0xc000_1000, "set_ptes")]),
            of("lesson", &[(0x1_0000, "load_word")]),
        ]);
        assert_eq!(known.address("--at", "load_word").unwrap(), 0x1_0000);
        let error = |name| known.address("--at", name).unwrap_err().to_string();
        assert_eq!(
            error("laod_word"),
            "--at laod_word: no such function; did you mean \"load_word\"?"
        );
        assert_eq!(
            error("nothing_like_it"),
            "--at nothing_like_it: no such function in the kernel, lesson"
        );
    }
}
