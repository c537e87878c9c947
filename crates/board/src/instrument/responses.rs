// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches responses on one pin with stimuli on another pin. Uses only recorded edges.

use crate::bus::Edge;

/// A stimulus with the responses before the next stimulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Core cycle of the rise of the stimulus.
    pub at: u64,
    /// Core cycles to the first rise of the response.
    pub first: Option<u64>,
    /// Core cycles to the second rise of the response.
    pub second: Option<u64>,
    /// Number of rises of the response.
    pub rises: u32,
}

/// All stimuli of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    /// Stimuli in order, without the last one, whose responses may lie after the end of the recording.
    pub each: Vec<Response>,
    /// Number of rises of the response before the first stimulus.
    pub before: u32,
}

impl Responses {
    /// Matches the rises of two pins.
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

    /// Returns the stimuli from the first one with two responses to the last one with two responses. The guest's
    /// program was running between these two stimuli.
    pub fn served(&self) -> &[Response] {
        let twice = |r: &Response| r.second.is_some();
        let first = self.each.iter().position(twice);
        let last = self.each.iter().rposition(twice);
        match (first, last) {
            (Some(first), Some(last)) => &self.each[first..=last],
            _ => &[],
        }
    }

    /// Returns the number of stimuli without a response before the next stimulus.
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
