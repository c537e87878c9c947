// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of pulses and answers in recorded edges.

use super::*;

#[test]
fn a_pulse_counts_from_the_tasks_first_wait_to_its_last_answer() {
    let edge = |cycle, pin, level| Edge { cycle, pin, level };
    let mut edges = vec![
        edge(5, STIMULUS, true),
        edge(10, SERVING, true),
        edge(15, STIMULUS, false),
    ];
    assert!(served(&edges).is_empty(), "it never answered");
    edges.extend([edge(40, ANSWERED, true), edge(80, ANSWERED, false)]);
    edges.push(edge(90, SERVING, false));
    assert_eq!(served(&edges), 10..81);
    assert_eq!(answers(&edges), [40, 80]);
}

fn pulse(at: u64, task: Option<u64>) -> Pulse {
    Pulse {
        at,
        interrupt: Some(1),
        task,
    }
}

#[test]
fn a_late_answer_belongs_to_the_pulse_that_was_handled() {
    let cycles = [
        (10, STIMULUS),
        (12, ANSWER),
        (15, ANSWER),
        (16, ANSWERED),
        (20, STIMULUS),
        (21, ANSWER),
        (30, STIMULUS),
        (31, ANSWER),
        (32, ANSWERED),
        (34, ANSWER),
        (40, STIMULUS),
        (41, ANSWER),
        (43, ANSWER),
        (44, ANSWERED),
    ];
    let mut level = false;
    let edges: Vec<Edge> = cycles
        .into_iter()
        .map(|(cycle, pin)| {
            level ^= pin == ANSWERED;
            let level = level || pin != ANSWERED;
            Edge { cycle, pin, level }
        })
        .collect();
    let found: Vec<_> = pulses(&edges)
        .iter()
        .map(|p| (p.at, p.interrupt, p.task))
        .collect();
    let expected = [
        (10, Some(2), Some(5)),
        (20, Some(1), Some(11)),
        (30, Some(4), None),
        (40, Some(1), Some(3)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn latencies_are_those_of_handler_and_task() {
    let pulses = [pulse(150, Some(2)), pulse(250, None), pulse(350, Some(4))];
    let series = latencies(&pulses, 100);
    let ns = 1_000_000_000 / 100;
    assert_eq!((series[0].asked, &*series[0].ns), (3, &[(ns, 3)][..]));
    assert_eq!(series[1].ns, [(2 * ns, 1), (4 * ns, 1)]);
    assert_eq!(series[1].answered, 2);
}

#[test]
fn answers_belong_to_the_frequency_of_their_time() {
    let step = |hz, s| Step { hz, s };
    let table = ScopeTable {
        steps: vec![step(10, Some(1.0)), step(20, Some(1.0)), step(10, None)],
        width_us: 1.0,
        jitter_us: 0.0,
        window_us: 1.0,
    };
    let pulses = [150, 250, 299, 350].map(|at| pulse(at, Some(1)));
    let series = table.shares(&pulses, &[155, 200, 310, 360], 100, 100);
    let found: Vec<_> = series
        .iter()
        .map(|s| (s.name.as_str(), s.at["hz"], s.asked, s.answered))
        .collect();
    let expected = [
        ("rising", 10, 1, 1),
        ("rising", 20, 2, 1),
        ("falling", 10, 1, 1),
    ];
    assert_eq!(found, expected);
}
