// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observers that can run together with chaos: the checker, or no observer.

use super::Chaos;
use crate::checker::Checker;
use arm::{Context, Cpu, Event, Exit, Reaction};
use board::bus::SystemBus;
use board::bus::dma::Transfer;
use board::{Observed, Observer};

/// An observer that can run together with chaos.
pub trait Companion: Observer {
    /// Runs the core with chaos and this observer ([`Observer::run_core`]). Each implementation is a function of this
    /// crate, so that the core's loop is compiled in this crate.
    fn run_core_of_both(cpu: &mut Cpu<Observed<Chaos<Self>>>, limit: u64) -> Exit
    where
        Self: Sized;
}

impl Companion for Checker {
    #[inline(never)]
    fn run_core_of_both(cpu: &mut Cpu<Observed<Chaos<Checker>>>, limit: u64) -> Exit {
        cpu.run(limit)
    }
}

impl Companion for Unobserved {
    #[inline(never)]
    fn run_core_of_both(cpu: &mut Cpu<Observed<Chaos<Unobserved>>>, limit: u64) -> Exit {
        cpu.run(limit)
    }
}

/// No other observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&mut self, _: &SystemBus, _: &Context, _: Event<'_>) -> Reaction {
        Reaction::Continue
    }

    fn transferred(&mut self, _: &Transfer) -> Reaction {
        Reaction::Continue
    }
}
