// SPDX-License-Identifier: MIT OR Apache-2.0
//! The card's states and commands.

use super::content::{Refused, Storage};
use super::registers::{self, ADDRESS, OCR_HIGH_CAPACITY, OCR_READY, OCR_VOLTAGES};
use super::{Answer, BLOCK, Flow, Response};

/// Time to program a block, in ns. An estimate.
const PROGRAM_NS: u64 = 20_000;
/// Time to finish a write of many blocks, in ns. An estimate.
const FINISH_NS: u64 = 200_000;
/// Time to erase, in ns. An estimate.
const ERASE_NS: u64 = 1_000_000;

const OUT_OF_RANGE: u32 = 1 << 31;
const BLOCK_LENGTH: u32 = 1 << 29;
const ERASE_SEQUENCE: u32 = 1 << 28;
const ERASE_PARAMETER: u32 = 1 << 27;
const ILLEGAL: u32 = 1 << 22;
const UNREADABLE: u32 = 1 << 21;
const GENERAL: u32 = 1 << 19;
const READY_FOR_DATA: u32 = 1 << 8;
const APPLICATION: u32 = 1 << 5;

/// State of the card, with the number that the card status has for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Idle,
    Ready,
    Identification,
    StandBy,
    Transfer,
    Sending,
    Receiving,
    Inactive,
}

arm::state!(
    enum Mode: Idle, Ready, Identification, StandBy, Transfer, Sending, Receiving, Inactive
);

/// What the card sends or receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Data {
    #[default]
    Nothing,
    Register,
    Block,
    Blocks,
}

arm::state!(enum Data: Nothing, Register, Block, Blocks);

/// The card without its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Protocol {
    mode: Mode,
    /// Whether the next command is an application command.
    application: bool,
    /// Whether the host has checked the voltage (CMD8), which a host of a high-capacity card does.
    checked: bool,
    /// Whether the host has started the card's initialisation, which ends at the next request.
    starting: bool,
    wide: bool,
    fast: bool,
    /// Errors for the next card status.
    errors: u32,
    data: Data,
    /// Register that is sent.
    register: Vec<u8>,
    /// Next block.
    block: u32,
    /// Blocks of the last write that the card accepted.
    accepted: u32,
    /// First and last block to erase.
    erase: [Option<u32>; 2],
}

arm::state!(
    Protocol: mode, application, checked, starting, wide, fast, errors, data, register, block,
    accepted, erase
);

fn silent() -> Answer {
    Answer {
        response: Response::None,
        data: Flow::None,
        busy_ns: 0,
    }
}

fn long(register: [u32; 4]) -> Answer {
    Answer {
        response: Response::Long(register),
        ..silent()
    }
}

fn short(value: u32) -> Answer {
    Answer {
        response: Response::Short {
            value,
            checked: true,
        },
        ..silent()
    }
}

impl Protocol {
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    pub fn command(&mut self, storage: &mut Storage, index: u8, argument: u32) -> Answer {
        let application = core::mem::take(&mut self.application);
        let mode = self.mode;
        if mode == Mode::Inactive {
            return silent();
        }
        let answer = match application {
            true => self.application(index, argument),
            false => None,
        };
        let answer = answer
            .or_else(|| self.basic(storage, index, argument))
            .or_else(|| self.addressed(storage, index, argument))
            .or_else(|| self.erases(storage, index, argument));
        answer.unwrap_or_else(|| {
            self.errors |= ILLEGAL;
            silent()
        })
    }

    /// Returns the card status (R1) with the state in which the card got the command.
    fn status(&mut self, before: Mode) -> u32 {
        let errors = core::mem::take(&mut self.errors);
        let application = if self.application { APPLICATION } else { 0 };
        errors | (before as u32) << 9 | READY_FOR_DATA | application
    }

    fn told(&mut self, before: Mode) -> Answer {
        short(self.status(before))
    }

    /// Sends a register as data.
    fn sends(&mut self, register: Vec<u8>) -> Option<Answer> {
        (self.mode == Mode::Transfer).then(|| {
            (self.mode, self.data, self.register) = (Mode::Sending, Data::Register, register);
            Answer {
                data: Flow::ToHost,
                ..self.told(Mode::Transfer)
            }
        })
    }

    /// Commands for all cards, and those that select a card.
    fn basic(&mut self, storage: &Storage, index: u8, argument: u32) -> Option<Answer> {
        let is_mine = argument >> 16 == u32::from(ADDRESS);
        let mode = self.mode;
        let answer = match (index, mode) {
            (0, _) => {
                *self = Protocol::default();
                silent()
            }
            (8, Mode::Idle) if argument >> 8 & 0xf == 1 => {
                self.checked = true;
                short(argument & 0xfff)
            }
            (8, Mode::Idle) => silent(),
            (2, Mode::Ready) => {
                self.mode = Mode::Identification;
                long(registers::cid())
            }
            (3, Mode::Identification | Mode::StandBy) => {
                self.mode = Mode::StandBy;
                let status = self.status(mode);
                let errors = status >> 8 & 0xc000 | status >> 6 & 0x2000;
                short(u32::from(ADDRESS) << 16 | errors | status & 0x1fff)
            }
            (4, Mode::StandBy) => silent(),
            (7, Mode::StandBy) if is_mine => {
                self.mode = Mode::Transfer;
                self.told(mode)
            }
            (7, Mode::Transfer | Mode::Sending) if !is_mine => {
                (self.mode, self.data) = (Mode::StandBy, Data::Nothing);
                silent()
            }
            (9 | 10 | 13 | 15, _) if mode as u32 >= Mode::StandBy as u32 && !is_mine => silent(),
            (9, Mode::StandBy) => long(registers::csd(storage.bytes())),
            (10, Mode::StandBy) => long(registers::cid()),
            (13, _) if mode as u32 >= Mode::StandBy as u32 => self.told(mode),
            (15, _) if mode as u32 >= Mode::StandBy as u32 => {
                self.mode = Mode::Inactive;
                silent()
            }
            (55, Mode::Idle) if argument >> 16 == 0 => {
                self.application = true;
                self.told(mode)
            }
            (55, _) if mode as u32 >= Mode::StandBy as u32 && is_mine => {
                self.application = true;
                self.told(mode)
            }
            (55, _) if mode as u32 >= Mode::StandBy as u32 => silent(),
            _ => return None,
        };
        Some(answer)
    }

    /// Commands of the selected card that move data.
    fn addressed(&mut self, storage: &Storage, index: u8, argument: u32) -> Option<Answer> {
        let mode = self.mode;
        let answer = match (index, mode) {
            (6, Mode::Transfer) => {
                let (status, fast) = registers::switched(argument, self.fast);
                self.fast = fast;
                return self.sends(status);
            }
            (12, Mode::Sending) => {
                (self.mode, self.data) = (Mode::Transfer, Data::Nothing);
                self.told(mode)
            }
            (12, Mode::Receiving) => {
                (self.mode, self.data) = (Mode::Transfer, Data::Nothing);
                Answer {
                    busy_ns: FINISH_NS,
                    ..self.told(mode)
                }
            }
            (16, Mode::Transfer) => {
                if argument as usize > BLOCK {
                    self.errors |= BLOCK_LENGTH;
                }
                self.told(mode)
            }
            (17 | 18 | 24 | 25, Mode::Transfer) if argument >= storage.blocks() => {
                self.errors |= OUT_OF_RANGE;
                self.told(mode)
            }
            (17 | 18 | 24 | 25, Mode::Transfer) => {
                let (mode, flow) = match index {
                    17 | 18 => (Mode::Sending, Flow::ToHost),
                    _ => (Mode::Receiving, Flow::FromHost),
                };
                let many = matches!(index, 18 | 25);
                self.data = if many { Data::Blocks } else { Data::Block };
                (self.mode, self.block) = (mode, argument);
                if flow == Flow::FromHost {
                    self.accepted = 0;
                }
                Answer {
                    data: flow,
                    ..self.told(Mode::Transfer)
                }
            }
            _ => return None,
        };
        Some(answer)
    }

    fn erases(&mut self, storage: &mut Storage, index: u8, argument: u32) -> Option<Answer> {
        if self.mode != Mode::Transfer || !matches!(index, 32 | 33 | 38) {
            return None;
        }
        let mut busy_ns = 0;
        match index {
            32 | 33 if argument >= storage.blocks() => self.errors |= OUT_OF_RANGE,
            32 => self.erase = [Some(argument), None],
            33 if self.erase[0].is_none() => self.errors |= ERASE_SEQUENCE,
            33 => self.erase[1] = Some(argument),
            _ => match core::mem::take(&mut self.erase) {
                [Some(first), Some(last)] if first <= last && last < storage.blocks() => {
                    match storage.erase(first, last) {
                        Ok(()) => busy_ns = ERASE_NS,
                        Err(_) => self.errors |= GENERAL,
                    }
                }
                [Some(_), Some(_)] => self.errors |= ERASE_PARAMETER,
                _ => self.errors |= ERASE_SEQUENCE,
            },
        }
        Some(Answer {
            busy_ns,
            ..self.told(Mode::Transfer)
        })
    }

    /// Application commands. Returns `None` for a command that is not one of them.
    fn application(&mut self, index: u8, argument: u32) -> Option<Answer> {
        let mode = self.mode;
        match (index, mode) {
            (41, Mode::Idle) => {
                let is_asked = argument & OCR_VOLTAGES != 0;
                let can_start = is_asked && self.checked && argument & OCR_HIGH_CAPACITY != 0;
                let mut value = OCR_VOLTAGES;
                if can_start && core::mem::replace(&mut self.starting, true) {
                    self.mode = Mode::Ready;
                    value |= OCR_READY | OCR_HIGH_CAPACITY;
                }
                let checked = false;
                Some(Answer {
                    response: Response::Short { value, checked },
                    ..silent()
                })
            }
            (6, Mode::Transfer) if matches!(argument & 3, 0 | 2) => {
                self.wide = argument & 3 == 2;
                Some(self.told_application(mode))
            }
            (23 | 42, Mode::Transfer) => Some(self.told_application(mode)),
            (13, Mode::Transfer) => self.sends_application(registers::sd_status(self.wide)),
            (22, Mode::Transfer) => self.sends_application(self.accepted.to_be_bytes().to_vec()),
            (51, Mode::Transfer) => self.sends_application(registers::SCR.to_vec()),
            _ => None,
        }
    }

    fn told_application(&mut self, before: Mode) -> Answer {
        short(self.status(before) | APPLICATION)
    }

    fn sends_application(&mut self, register: Vec<u8>) -> Option<Answer> {
        let answer = self.sends(register)?;
        let response = match answer.response {
            Response::Short { value, checked } => Response::Short {
                value: value | APPLICATION,
                checked,
            },
            other => other,
        };
        Some(Answer { response, ..answer })
    }

    pub fn send_block(&mut self, storage: &Storage) -> Option<Vec<u8>> {
        if self.mode != Mode::Sending {
            return None;
        }
        let (block, data) = (self.block, self.data);
        if data != Data::Blocks {
            (self.mode, self.data) = (Mode::Transfer, Data::Nothing);
        }
        match data {
            Data::Nothing => None,
            Data::Register => Some(core::mem::take(&mut self.register)),
            Data::Block | Data::Blocks => {
                let bytes = storage.block(block);
                match bytes {
                    Ok(_) => self.block = block + 1,
                    Err(Refused::Beyond) => self.errors |= OUT_OF_RANGE,
                    Err(Refused::Failed) => self.errors |= UNREADABLE,
                }
                bytes.ok()
            }
        }
    }

    pub fn receive_block(&mut self, storage: &mut Storage, bytes: &[u8]) -> Option<u64> {
        if self.mode != Mode::Receiving {
            return None;
        }
        let many = self.data == Data::Blocks;
        if !many {
            (self.mode, self.data) = (Mode::Transfer, Data::Nothing);
        }
        if bytes.len() != BLOCK {
            return None;
        }
        if let Err(refused) = storage.write_block(self.block, bytes) {
            self.errors |= match refused {
                Refused::Beyond => OUT_OF_RANGE,
                Refused::Failed => GENERAL,
            };
            return None;
        }
        self.block += 1;
        self.accepted = self.accepted.saturating_add(1);
        Some(if many {
            PROGRAM_NS
        } else {
            PROGRAM_NS + FINISH_NS
        })
    }
}
