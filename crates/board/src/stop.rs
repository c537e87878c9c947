// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons that end a run, and the messages for all of them.
//!
//! A message says what happened, where (pc, symbol, board time), and what to do next.

use arm::Width;
use std::fmt::Write as _;

/// A bus transaction, as messages describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Kind of the transaction.
    pub kind: Kind,
    /// Physical address.
    pub pa: u32,
    /// Width of a single transfer.
    pub width: Width,
    /// Value written; zero for reads.
    pub value: u32,
}

/// Kind of a bus transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Single read (data, instruction or descriptor).
    Read,
    /// Single write.
    Write,
    /// Cache line fill.
    LineFill,
    /// Write burst of words.
    BurstWrite,
}

/// Reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The limit of board time was reached.
    Limit,
    /// The console printed the awaited text.
    ConsoleMatched,
    /// A probed pin changed its level.
    Edge,
    /// The board sent an Ethernet frame.
    Frame,
    /// A breakpoint was reached.
    Breakpoint,
    /// The observer requested the stop.
    Observer,
    /// The guest reset the board.
    Reset,
    /// The core waits for an interrupt that nothing can raise.
    Asleep,
    /// The core takes exception after exception without executing an instruction.
    ExceptionLoop,
    /// The core accessed an unmapped address.
    Unmapped(Transaction),
    /// A device refused an access that its model does not cover.
    Unmodelled {
        /// Name of the device in the machine file.
        device: String,
        /// The refused access.
        access: Transaction,
        /// Reason that the device gives.
        reason: String,
    },
    /// The core executed a system control coprocessor operation that its model does not cover.
    UnmodelledCp15 {
        /// `opc1, CRn, CRm, opc2`: one byte each, most significant first. An `opc1` of 8 or more stands for CP14.
        operation: u32,
    },
    /// The core executed an instruction that asks for something that its model does not cover.
    UnmodelledCase {
        /// What it asked for.
        what: &'static str,
    },
    /// The wires of the machine file form a loop whose levels do not settle.
    WireLoop {
        /// A device in the loop.
        device: String,
    },
}

/// Position of the core when a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Address of the next instruction.
    pub pc: u32,
    /// Symbol and offset, such as `name+0x12`, if the symbols are known.
    pub symbol: Option<String>,
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Board time, seconds.
    pub seconds: f64,
}

impl Stop {
    /// Returns whether the run cannot continue.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Stop::Limit
                | Stop::ConsoleMatched
                | Stop::Edge
                | Stop::Frame
                | Stop::Breakpoint
                | Stop::Observer
                | Stop::Asleep
        )
    }

    /// Returns one line that says what happened.
    pub fn what(&self) -> String {
        match self {
            Stop::Limit => "the limit of board time was reached".to_owned(),
            Stop::ConsoleMatched => "the console printed the awaited text".to_owned(),
            Stop::Edge => "a probed pin changed its level".to_owned(),
            Stop::Frame => "the board sent an Ethernet frame".to_owned(),
            Stop::Breakpoint => "a breakpoint was reached".to_owned(),
            Stop::Observer => "the observer stopped the run".to_owned(),
            Stop::Reset => "the guest reset the board".to_owned(),
            Stop::Asleep => "the core waits for an interrupt that nothing can raise".to_owned(),
            Stop::ExceptionLoop => {
                "the core takes exception after exception without executing an instruction"
                    .to_owned()
            }
            Stop::Unmapped(access) => format!("nothing answers {}", access.words()),
            Stop::Unmodelled {
                device,
                access,
                reason,
            } => {
                format!("{device} does not model {}: {reason}", access.words())
            }
            Stop::UnmodelledCp15 { operation } => {
                let [opc1, crn, crm, opc2] = operation.to_be_bytes();
                let (number, opc1) = if opc1 < 8 { (15, opc1) } else { (14, opc1 - 8) };
                format!(
                    "the core does not model the CP{number} operation {opc1}, c{crn}, c{crm}, {opc2}"
                )
            }
            Stop::UnmodelledCase { what } => format!("the core does not model {what}"),
            Stop::WireLoop { device } => {
                format!("the wires around \"{device}\" form a loop whose levels do not settle")
            }
        }
    }

    /// Returns lines that say what to do next. Intended stops have no such lines.
    pub fn help(&self) -> &'static [&'static str] {
        match self {
            Stop::Limit => &["raise --limit (seconds of board time)"],
            Stop::ConsoleMatched
            | Stop::Edge
            | Stop::Frame
            | Stop::Breakpoint
            | Stop::Observer
            | Stop::Reset => &[],
            Stop::Asleep => &[
                "no timer runs and no input is pending: send input to the console, or find out with \
                 `warmswitch debug` what the guest waits for",
            ],
            Stop::ExceptionLoop => &[
                "check that the exception vectors are mapped, that SCTLR.V selects them, and that the \
                 image is complete",
                "`warmswitch debug` shows memory and registers",
            ],
            Stop::Unmapped(_) => &[
                "the guest used a wrong address, or expects a part that this board does not have: \
                 boards/machine/*.toml lists its parts",
                "if the guest can do without the part, list its region there under [[ignored]] with a reason",
                "a kernel for RAM at another address (a zImage without CONFIG_AUTO_ZRELADDR) also ends this way",
            ],
            Stop::Unmodelled { .. } => &[
                "the top of crates/board/src/device/<family>/<part>.rs says what the part models",
                "the simulator does not guess: change the guest's driver, or add the access to the part",
            ],
            Stop::UnmodelledCp15 { .. } => &[
                "crates/arm/src/model lists the modelled operations",
                "`warmswitch debug` shows how the guest got here",
            ],
            Stop::UnmodelledCase { .. } => &[
                "the simulator does not guess: change the program; docs/understand/LIMITS.md lists what is left out",
                "`warmswitch debug` shows how the guest got here",
            ],
            Stop::WireLoop { .. } => &["break the loop in [wiring] of boards/machine/*.toml"],
        }
    }

    /// Returns the complete message: what happened, where, and the lines of [`Stop::help`].
    pub fn message(&self, place: &Place) -> String {
        let mut text = self.what();
        let _ = write!(text, "\n  at pc {:#010x}", place.pc);
        if let Some(symbol) = &place.symbol {
            let _ = write!(text, " ({symbol})");
        }
        let _ = write!(
            text,
            ", {:.6} s of board time, cycle {}",
            place.seconds, place.cycle
        );
        for line in self.help() {
            let _ = write!(text, "\n  help: {line}");
        }
        text
    }
}

impl Transaction {
    fn words(&self) -> String {
        let width = match self.width {
            Width::Byte => "byte",
            Width::Half => "halfword",
            Width::Word => "word",
        };
        let pa = self.pa;
        match self.kind {
            Kind::Read => format!("a {width} read from {pa:#010x}"),
            Kind::Write => format!("a {width} write of {:#x} to {pa:#010x}", self.value),
            Kind::LineFill => format!("a line fill from {pa:#010x}"),
            Kind::BurstWrite => format!(
                "a burst write starting with {:#x} to {pa:#010x}",
                self.value
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(symbol: Option<&str>) -> Place {
        Place {
            pc: 0xc001_2344,
            symbol: symbol.map(str::to_owned),
            cycle: 900_000,
            seconds: 0.005,
        }
    }

    fn write(pa: u32) -> Transaction {
        Transaction {
            kind: Kind::Write,
            pa,
            width: Width::Half,
            value: 0xbeef,
        }
    }

    #[test]
    fn an_unmapped_access_says_what_where_and_how_to_go_on() {
        assert_eq!(
            Stop::Unmapped(write(0x5000_0000)).message(&place(Some("start_kernel+0x10"))),
            "nothing answers a halfword write of 0xbeef to 0x50000000\n  \
             at pc 0xc0012344 (start_kernel+0x10), 0.005000 s of board time, cycle 900000\n  \
             help: the guest used a wrong address, or expects a part that this board does not have: \
             boards/machine/*.toml lists its parts\n  \
             help: if the guest can do without the part, list its region there under [[ignored]] with a \
             reason\n  \
             help: a kernel for RAM at another address (a zImage without CONFIG_AUTO_ZRELADDR) also ends \
             this way"
        );
    }

    #[test]
    fn a_refusal_carries_the_devices_words() {
        let stop = Stop::Unmodelled {
            device: "uart0".to_owned(),
            access: Transaction {
                kind: Kind::Read,
                pa: 0x101f_1048,
                width: Width::Word,
                value: 0,
            },
            reason: "DMA is not modelled".to_owned(),
        };
        assert_eq!(
            stop.message(&place(None)),
            "uart0 does not model a word read from 0x101f1048: DMA is not modelled\n  \
             at pc 0xc0012344, 0.005000 s of board time, cycle 900000\n  \
             help: the top of crates/board/src/device/<family>/<part>.rs says what the part models\n  \
             help: the simulator does not guess: change the guest's driver, or add the access to the part"
        );
    }

    #[test]
    fn intended_stops_need_no_help() {
        assert_eq!(
            Stop::Reset.message(&place(None)),
            "the guest reset the board\n  \
             at pc 0xc0012344, 0.005000 s of board time, cycle 900000"
        );
        assert!(Stop::Reset.is_final());
    }

    #[test]
    fn only_what_can_go_on_is_not_final() {
        assert!(!Stop::Limit.is_final() && !Stop::Edge.is_final() && !Stop::Asleep.is_final());
        assert!(Stop::Unmapped(write(0)).is_final() && Stop::ExceptionLoop.is_final());
    }
}
