// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses instructions and addresses as the user names them.

use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

use crate::coherence::replay::At;
use base::suggest::did_you_mean;
use supply::symbols::Symbols;

/// An instruction to stop at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Address and core cycle, as in a report's `PC@CYCLE`.
    Then(At),
    /// Address.
    Pc(u32),
    /// Function, and offset in bytes.
    Function(String, u32),
    /// Register that holds the address.
    Register(usize),
}

/// Address of the memory to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// Virtual address.
    Va(u32),
    /// Register that holds a virtual address before the instruction, and an offset in bytes.
    Register(usize, u32),
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Parses r0 to r15, sp, lr and pc.
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

/// Functions of the kernel and of the user's programs.
pub struct Functions {
    /// Symbols, each with the name of the kernel or program.
    all: Vec<(String, Symbols)>,
}

impl Functions {
    /// Makes the list of symbols, in search order. The kernel's symbols come first.
    pub fn new(all: Vec<(String, Symbols)>) -> Functions {
        Functions { all }
    }

    /// Returns the address of a function. The error message names `option`.
    pub fn address(&self, option: &str, name: &str) -> Result<u32> {
        let found = self.all.iter().find_map(|(_, s)| s.address(name));
        found.ok_or_else(|| anyhow!("{option} {name}: no such function{}", self.near(name)))
    }

    fn near(&self, name: &str) -> String {
        let functions = self.all.iter().flat_map(|(_, s)| s.functions());
        let names: Vec<&str> = functions.map(|(_, name)| name.as_str()).collect();
        // If no name is similar, `did_you_mean` would list thousands of functions.
        match did_you_mean(name, &names) {
            near if near.contains("did you mean") => near,
            _ => {
                let sources: Vec<&str> = self.all.iter().map(|(of, _)| of.as_str()).collect();
                format!(" in {}", sources.join(", "))
            }
        }
    }

    /// Returns the name of an address, like `load_word+0x4`. Returns `None` if the address is in no function.
    pub fn name(&self, pc: u32) -> Option<String> {
        let mut all = self.all.iter();
        all.find_map(|(_, s)| s.name(pc))
    }

    /// Returns the address of a place. Rejects a register, because its value is unknown before the board runs.
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
        let source =
            |name: &str, functions: &[(u32, &str)]| (name.to_string(), Symbols::by_hand(functions));
        let known = Functions::new(vec![
            source("the kernel", &[(0xc000_1000, "set_ptes")]),
            source("lesson", &[(0x1_0000, "load_word")]),
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
