// SPDX-License-Identifier: MIT OR Apache-2.0
//! The caches of a core, and access to their lines.

use arm::HeldLine;

use super::state::State;

/// A cache of a core. `side` and `mini` select its lines in a state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    pub name: &'static str,
    /// 0 for data, 1 for instructions.
    pub side: usize,
    pub mini: bool,
    pub sets: u32,
    pub ways: u32,
}

impl Cache {
    /// Returns the caches of a board. The mini data cache is included only if it holds a line.
    pub fn all(states: [&State; 2]) -> Vec<Cache> {
        let main = |name, side: usize| {
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
        let mut all = vec![main("D-cache", 0)];
        all.extend(has_mini.then_some(mini));
        all.push(main("I-cache", 1));
        all
    }

    /// Returns the line in a set and way; `None` if the line is invalid.
    pub fn line<'a>(&self, state: &'a State, place: (u32, u32)) -> Option<&'a HeldLine> {
        let mut lines = state.lines[self.side].iter();
        lines.find(|line| line.mini == self.mini && line.place == place)
    }
}
