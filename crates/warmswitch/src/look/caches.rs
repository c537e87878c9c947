// SPDX-License-Identifier: MIT OR Apache-2.0
//! The caches of a core, and where their lines are.

use arm::HeldLine;

use super::state::State;

/// One of a core's caches: which of a state's lines are its.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    pub name: &'static str,
    /// 0 the data's, 1 the instructions'.
    pub side: usize,
    pub mini: bool,
    pub sets: u32,
    pub ways: u32,
}

impl Cache {
    /// Those of a board; the mini data cache where it holds something.
    pub fn all(states: [&State; 2]) -> Vec<Cache> {
        let of = |name, side: usize| {
            let shape = states[0].shapes[side];
            Cache {
                name,
                side,
                mini: false,
                sets: shape.sets(),
                ways: shape.ways,
            }
        };
        let mini = Cache {
            name: "mini D-cache",
            side: 0,
            mini: true,
            sets: 32,
            ways: 2,
        };
        let has_mini = states.iter().any(|s| s.lines[0].iter().any(|l| l.mini));
        let mut all = vec![of("D-cache", 0)];
        all.extend(has_mini.then_some(mini));
        all.push(of("I-cache", 1));
        all
    }

    /// What it holds there.
    pub fn line<'a>(&self, state: &'a State, place: (u32, u32)) -> Option<&'a HeldLine> {
        let mut lines = state.lines[self.side].iter();
        lines.find(|line| line.mini == self.mini && line.place == place)
    }
}
