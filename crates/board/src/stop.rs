// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way a run can end, and the one place that puts it into words.
//!
//! A message says what happened, where (pc, symbol, board time), and how to go on.

use arm::Width;
use std::fmt::Write as _;

/// One bus transaction, as a message needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What the core did.
    pub kind: Kind,
    /// Physical address.
    pub pa: u32,
    /// Width of a single transfer.
    pub width: Width,
    /// The value written; zero for reads.
    pub value: u32,
}

/// Kinds of bus transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Single read (data, instruction or descriptor).
    Read,
    /// Single write.
    Write,
    /// Cache line fill.
    LineFill,
    /// Burst of words.
    BurstWrite,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The limit of board time was reached.
    Limit,
    /// The console printed what was waited for.
    ConsoleMatched,
    /// A probed pin moved.
    Edge,
    /// The board sent an Ethernet frame.
    Frame,
    /// A breakpoint was reached.
    Breakpoint,
    /// The observer asked.
    Observer,
    /// The guest reset the board.
    Reset,
    /// Waiting for an interrupt that nothing can raise.
    Asleep,
    /// Exception after exception, no instruction in between.
    ExceptionLoop,
    /// Nothing is at this address.
    Unmapped(Transaction),
    /// A device refused: the model does not cover this access.
    Unmodelled {
        /// The device's name on its board.
        device: String,
        /// The access.
        access: Transaction,
        /// The device's words.
        reason: String,
    },
    /// A system control coprocessor operation that the model does not cover.
    UnmodelledCp15 {
        /// `opc1, CRn, CRm, opc2`, a byte each from the top.
        operation: u32,
    },
    /// The wires of the machine file feed back and never settle.
    WireLoop {
        /// A device in the loop.
        device: String,
    },
}

/// Where the core was when a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Address of the next instruction.
    pub pc: u32,
    /// `name+0x12`, when symbols are known.
    pub symbol: Option<String>,
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Board time, seconds.
    pub seconds: f64,
}

impl Stop {
    /// Whether the run cannot be continued from here.
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

    /// One line: what happened.
    pub fn what(&self) -> String {
        match self {
            Stop::Limit => "the limit of board time was reached".to_owned(),
            Stop::ConsoleMatched => "the console printed what was waited for".to_owned(),
            Stop::Edge => "a probed pin moved".to_owned(),
            Stop::Frame => "the board sent an Ethernet frame".to_owned(),
            Stop::Breakpoint => "breakpoint".to_owned(),
            Stop::Observer => "the observer stopped the run".to_owned(),
            Stop::Reset => "the guest reset the board".to_owned(),
            Stop::Asleep => "the core waits for an interrupt that nothing can raise".to_owned(),
            Stop::ExceptionLoop => {
                "the core takes exception after exception without executing an instruction"
                    .to_owned()
            }
            Stop::Unmapped(access) => format!("nothing answers at {}", access.words()),
            Stop::Unmodelled {
                device,
                access,
                reason,
            } => {
                format!("{device} does not model {}: {reason}", access.words())
            }
            Stop::UnmodelledCp15 { operation } => {
                let [opc1, crn, crm, opc2] = operation.to_be_bytes();
                // XScale's CP14 stands beside it.
                let (which, opc1) = if opc1 < 8 { (15, opc1) } else { (14, opc1 - 8) };
                format!(
                    "the core does not model the CP{which} operation {opc1}, c{crn}, c{crm}, {opc2}"
                )
            }
            Stop::WireLoop { device } => {
                format!("the wires around \"{device}\" feed back and do not settle")
            }
        }
    }

    /// How to go on; empty when there is nothing to say.
    pub fn help(&self) -> &'static [&'static str] {
        match self {
            Stop::Limit => &["give it longer with --limit, in seconds of board time"],
            Stop::ConsoleMatched
            | Stop::Edge
            | Stop::Frame
            | Stop::Breakpoint
            | Stop::Observer
            | Stop::Reset => &[],
            Stop::Asleep => &[
                "no timer is running and no input is on its way: send something to the console, \
                 or look at what the guest waits for with `warmswitch debug`",
            ],
            Stop::ExceptionLoop => &[
                "the vectors lead nowhere: are they mapped, is SCTLR.V right, is the image whole?",
                "`warmswitch debug` shows memory and registers",
            ],
            Stop::Unmapped(_) => &[
                "the guest went astray, or expects a part this board does not have: the map is in \
                 boards/machine/*.toml",
                "a part that may be left out can be listed there under [[ignored]] with a reason",
                "a kernel for RAM at another address (a zImage without AUTO_ZRELADDR) ends like this, too",
            ],
            Stop::Unmodelled { .. } => &[
                "what each part models is said at the top of crates/board/src/device/<family>/<part>.rs",
                "the simulator does not guess: change the guest's driver, or add it to the part",
            ],
            Stop::UnmodelledCp15 { .. } => &[
                "the operations that are modelled are listed in crates/arm/src/model",
                "`warmswitch debug` shows what leads here",
            ],
            Stop::WireLoop { .. } => &["correct [wiring] in boards/machine/*.toml"],
        }
    }

    /// The whole message, with its place and help lines.
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
            "nothing answers at a halfword write of 0xbeef to 0x50000000\n  \
             at pc 0xc0012344 (start_kernel+0x10), 0.005000 s of board time, cycle 900000\n  \
             help: the guest went astray, or expects a part this board does not have: the map is \
             in boards/machine/*.toml\n  \
             help: a part that may be left out can be listed there under [[ignored]] with a reason\n  \
             help: a kernel for RAM at another address (a zImage without AUTO_ZRELADDR) ends like \
             this, too"
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
             help: what each part models is said at the top of crates/board/src/device/<family>/<part>.rs\n  \
             help: the simulator does not guess: change the guest's driver, or add it to the part"
        );
    }

    #[test]
    fn wished_for_endings_need_no_help() {
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
