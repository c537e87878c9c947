// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wires between devices. Several outputs on one input are a wired OR.

use crate::spec::{Sink, Wire};
use arm::{Damaged, Saved, State};

#[derive(Clone, Debug)]
struct Net {
    to: Sink,
    /// Levels of the outputs that drive the net: bit n is the net's n-th wire.
    high: u64,
}

#[derive(Clone, Copy, Debug)]
struct Driver {
    from: usize,
    pin: u32,
    net: usize,
    bit: u32,
}

arm::state!(Net: high; to);

/// All wires of a board.
#[derive(Clone, Debug)]
pub(crate) struct Wires {
    nets: Vec<Net>,
    drivers: Vec<Driver>,
    /// Whether the core has sampled the current levels of its interrupt request lines.
    pub sampled: bool,
}

impl State for Wires {
    fn save(&self, to: &mut Vec<u8>) {
        self.nets.as_slice().save(to);
        self.sampled.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.nets.as_mut_slice().restore(from)?;
        self.sampled.restore(from)
    }
}

impl Wires {
    /// Connects the wires. All levels are low.
    pub fn new(wires: &[Wire]) -> Wires {
        let mut nets: Vec<Net> = Vec::new();
        let mut drivers: Vec<Driver> = Vec::new();
        for wire in wires {
            let net = nets
                .iter()
                .position(|n| n.to == wire.to)
                .unwrap_or_else(|| {
                    nets.push(Net {
                        to: wire.to,
                        high: 0,
                    });
                    nets.len() - 1
                });
            let bit = drivers.iter().filter(|d| d.net == net).count() as u32 % 64;
            drivers.push(Driver {
                from: wire.from,
                pin: wire.pin,
                net,
                bit,
            });
        }
        Wires {
            nets,
            drivers,
            sampled: false,
        }
    }

    /// Returns the number of wires.
    pub fn len(&self) -> usize {
        self.drivers.len()
    }

    /// Propagates the changes of the outputs in `changed` of device `from`. Returns each sink whose level changes, with
    /// its new level.
    pub fn drive(&mut self, from: usize, outputs: u32, changed: u32) -> Vec<(Sink, bool)> {
        let mut moved = Vec::new();
        for d in &self.drivers {
            if d.from != from || changed >> d.pin & 1 == 0 {
                continue;
            }
            let net = &mut self.nets[d.net];
            let before = net.high != 0;
            net.high = net.high & !(1 << d.bit) | u64::from(outputs >> d.pin & 1) << d.bit;
            if before != (net.high != 0) {
                moved.push((net.to, !before));
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_high_while_any_of_its_wires_is() {
        let to = Sink::Device(2, 5);
        let mut w = Wires::new(&[
            Wire {
                from: 0,
                pin: 0,
                to,
            },
            Wire {
                from: 1,
                pin: 3,
                to,
            },
        ]);
        assert_eq!(w.drive(0, 1, 1), [(to, true)]);
        assert_eq!(w.drive(1, 8, 8), []);
        assert_eq!(w.drive(0, 0, 1), []);
        assert_eq!(w.drive(1, 0, 8), [(to, false)]);
    }

    #[test]
    fn one_output_reaches_all_its_inputs() {
        let (a, b) = (Sink::Irq, Sink::Device(1, 0));
        let mut w = Wires::new(&[
            Wire {
                from: 0,
                pin: 2,
                to: a,
            },
            Wire {
                from: 0,
                pin: 2,
                to: b,
            },
        ]);
        assert_eq!(w.drive(0, 4, 4), [(a, true), (b, true)]);
        assert_eq!(w.drive(0, 4, 8), [], "another pin moved");
    }
}
