// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of parts: the name of each part, the values that a machine file may give it, and the function that makes
//! it.
//!
//! The meaning of a part's outputs and inputs is in its own file.

use super::{Device, at91, ethernet, flash, primecell, versatile};
use crate::suggest::did_you_mean;
use crate::time::Clock;
use std::collections::BTreeMap;

/// The data of one device in the machine file, apart from its part name and its address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Core clock in Hz.
    pub cpu_hz: u64,
    /// The part's own clock in Hz; `None` for the part's usual clock.
    pub clock_hz: Option<u64>,
    /// The part's values by key. A key that is left out has a default.
    pub values: BTreeMap<String, u64>,
}

impl Params {
    pub(super) fn clock(&self, usual_hz: u64) -> Clock {
        Clock {
            cpu_hz: self.cpu_hz,
            hz: self.clock_hz.unwrap_or(usual_hz),
        }
    }

    pub(super) fn value(&self, key: &str, usual: u64) -> u64 {
        self.values.get(key).copied().unwrap_or(usual)
    }
}

pub(super) const XTAL_HZ: u64 = 24_000_000;

/// A part, as a row of its family's list.
pub(super) struct Part {
    name: &'static str,
    /// Keys of [`Params::values`].
    keys: &'static [&'static str],
    make: fn(&Params) -> Box<dyn Device>,
}

/// Makes a row of a family's list: name, keys of [`Params::values`], and the function that makes the part.
pub(super) const fn part(
    name: &'static str,
    keys: &'static [&'static str],
    make: fn(&Params) -> Box<dyn Device>,
) -> Part {
    Part { name, keys, make }
}

/// Returns the parts of all families.
fn all() -> impl Iterator<Item = &'static Part> {
    [
        at91::PARTS,
        at91::sam9x60::PARTS,
        ethernet::PARTS,
        flash::PARTS,
        primecell::PARTS,
        versatile::PARTS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the names of all parts, in alphabetical order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = all().map(|p| p.name).collect();
    names.sort_unstable();
    names
}

/// Makes a part in its power-on state.
///
/// # Errors Fails when the part or one of its values does not exist, or when a clock is not between 1 Hz and 10 GHz.
/// The error text is written for users and suggests the nearest valid name.
pub fn build(part: &str, params: &Params) -> Result<Box<dyn Device>, String> {
    build_of(&all().collect::<Vec<_>>(), part, params)
}

fn build_of(parts: &[&Part], part: &str, params: &Params) -> Result<Box<dyn Device>, String> {
    let Some(found) = parts.iter().find(|p| p.name == part) else {
        let names: Vec<&str> = parts.iter().map(|p| p.name).collect();
        let near = did_you_mean(part, &names);
        return Err(format!("unknown part \"{part}\"{near}"));
    };
    if let Some(key) = params
        .values
        .keys()
        .find(|k| !found.keys.contains(&k.as_str()))
    {
        let near = did_you_mean(key, found.keys);
        return Err(format!("part \"{part}\" has no value \"{key}\"{near}"));
    }
    for (what, hz) in [
        ("cpu_hz", Some(params.cpu_hz)),
        ("clock_hz", params.clock_hz),
    ] {
        if let Some(hz) = hz.filter(|hz| !(1..=10_000_000_000).contains(hz)) {
            return Err(format!(
                "part \"{part}\": {what} = {hz} is not from 1 to 10000000000 Hz"
            ));
        }
    }
    Ok((found.make)(params))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Params {
        Params {
            cpu_hz: 200_000_000,
            ..Params::default()
        }
    }

    #[test]
    fn every_part_is_built_under_its_own_name_in_order() {
        for name in names() {
            let device = build(name, &params()).unwrap();
            assert_eq!((device.part(), device.clone().part()), (name, name));
        }
        assert!(names().is_sorted());
    }

    /// A complete part, for a test: a register that sums up the values that are written to it.
    #[derive(Clone)]
    struct Adder {
        sum: u32,
        step: u32,
    }

    arm::state!(Adder: sum; step);

    impl Device for Adder {
        fn part(&self) -> &'static str {
            "adder"
        }

        fn read(&mut self, _: u64, _: u32, _: arm::Width) -> Result<u32, super::super::Unmodelled> {
            Ok(self.sum)
        }

        fn write(
            &mut self,
            _: u64,
            _: u32,
            _: arm::Width,
            value: u32,
        ) -> Result<(), super::super::Unmodelled> {
            self.sum = self.sum.wrapping_add(value.wrapping_mul(self.step));
            Ok(())
        }
    }

    #[test]
    fn a_part_is_a_file_and_a_line() {
        let adder = |p: &Params| -> Box<dyn Device> {
            let step = p.value("step", 1) as u32;
            Box::new(Adder { sum: 0, step })
        };
        let line = &[&part("adder", &["step"], adder)];
        let mut p = params();
        p.values.insert("step".into(), 3);
        let mut device = build_of(line, "adder", &p).unwrap();
        device.write(0, 0, arm::Width::Word, 5).unwrap();
        assert_eq!(device.read(0, 0, arm::Width::Word), Ok(15));
        let mut saved = Vec::new();
        device.save(&mut saved);
        let mut other = build_of(line, "adder", &p).unwrap();
        other.restore(&mut arm::Saved::new(&saved)).unwrap();
        assert_eq!(other.read(0, 0, arm::Width::Word), Ok(15));
    }

    #[test]
    fn a_wrong_part_or_key_names_the_nearest() {
        let e = |part, p: &Params| build(part, p).err().unwrap();
        assert_eq!(
            e("pl012", &params()),
            "unknown part \"pl012\"; did you mean \"pl011\"?"
        );
        let mut p = params();
        p.values.insert("baudpace".into(), 0);
        let message = e("pl011", &p);
        assert_eq!(
            message,
            "part \"pl011\" has no value \"baudpace\"; did you mean \"baud_pace\"?"
        );
        assert_eq!(e("sp804", &p), "part \"sp804\" has no value \"baudpace\"");
    }

    #[test]
    fn a_clock_of_nothing_is_an_error() {
        let p = Params {
            clock_hz: Some(0),
            ..params()
        };
        assert!(build("sp804", &p).err().unwrap().contains("clock_hz = 0"));
        assert!(
            build("sp804", &Params::default())
                .err()
                .unwrap()
                .contains("cpu_hz = 0")
        );
    }

    #[test]
    fn no_access_to_any_part_panics() {
        use arm::Width::{Byte, Half, Word};
        for name in names() {
            let mut device = build(name, &params()).unwrap();
            let mut now = 0;
            for round in 0..3u32 {
                for offset in (0..0x1000u32).chain(0xffff_f000..=0xffff_ffff) {
                    now += 977;
                    for width in [Byte, Half, Word] {
                        let value = [0, u32::MAX, offset.wrapping_mul(0x9e37_79b9)][round as usize];
                        let _ = device.write(now, offset, width, value);
                        let _ = device.read(now, offset, width);
                    }
                    device.input(now, offset, round & 1 == 0);
                    device.receive(now, &[1, 2, 3]);
                    if device.deadline() <= now {
                        device.tick(now);
                        assert!(
                            device.deadline() > now,
                            "{name}: deadline stays in the past"
                        );
                    }
                    let _ = (device.outputs(), device.transmitted(), device.take_frames());
                }
            }
            device.tick(u64::MAX / 2);
            device.tick(u64::MAX);
        }
    }
}
