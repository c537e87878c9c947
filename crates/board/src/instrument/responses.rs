// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stimulus on one pin brought about on another, from recorded edges alone.

use crate::bus::Edge;

/// One stimulus and what followed it before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The stimulus's rise, core cycles.
    pub at: u64,
    /// Cycles to the response's first rise.
    pub first: Option<u64>,
    /// Cycles to the response's second rise.
    pub second: Option<u64>,
    /// Rises of the response.
    pub rises: u32,
}

/// All stimuli of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    /// In order. The last one is left out: what follows it may lie behind the recording's end.
    pub each: Vec<Response>,
    /// Rises of the response before the first stimulus.
    pub before: u32,
}

impl Responses {
    /// Reads the edges of two pins.
    pub fn new(edges: &[Edge], stimulus: u8, response: u8) -> Responses {
        let mut all = Responses::default();
        for edge in edges.iter().filter(|e| e.level) {
            if edge.pin == stimulus {
                all.each.push(Response {
                    at: edge.cycle,
                    first: None,
                    second: None,
                    rises: 0,
                });
            } else if edge.pin == response {
                let Some(last) = all.each.last_mut() else {
                    all.before += 1;
                    continue;
                };
                let after = Some(edge.cycle - last.at);
                match last.rises {
                    0 => last.first = after,
                    1 => last.second = after,
                    _ => {}
                }
                last.rises += 1;
            }
        }
        all.each.pop();
        all
    }

    /// From the first to the last stimulus with two responses: the time in which somebody answered.
    pub fn served(&self) -> &[Response] {
        let twice = |r: &Response| r.second.is_some();
        let first = self.each.iter().position(twice);
        let last = self.each.iter().rposition(twice);
        match (first, last) {
            (Some(first), Some(last)) => &self.each[first..=last],
            _ => &[],
        }
    }

    /// Stimuli without any response before the next one.
    pub fn unanswered(&self) -> usize {
        self.each.iter().filter(|r| r.rises == 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_belong_to_the_stimulus_before_them() {
        let edges: Vec<Edge> = [
            (5, 1),
            (10, 0),
            (17, 1),
            (29, 1),
            (100, 0),
            (200, 0),
            (203, 1),
            (300, 0),
            (301, 1),
        ]
        .into_iter()
        .flat_map(|(cycle, pin)| {
            [true, false].map(|level| Edge {
                cycle: cycle + u64::from(!level),
                pin,
                level,
            })
        })
        .collect();
        let r = Responses::new(&edges, 0, 1);
        assert_eq!(r.before, 1);
        let found: Vec<_> = r.each.iter().map(|r| (r.at, r.first, r.second)).collect();
        assert_eq!(
            found,
            [
                (10, Some(7), Some(19)),
                (100, None, None),
                (200, Some(3), None)
            ]
        );
        assert_eq!(r.unanswered(), 1);
        assert_eq!(r.served(), &r.each[..1]);
        assert_eq!(Responses::default().served(), []);
    }
}
