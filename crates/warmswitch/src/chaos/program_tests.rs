// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of random programs, and of the reduction of programs with an invented failure.

use super::super::draw;
use super::super::grammar::Grammar;
use super::*;

#[test]
fn a_seed_gives_the_same_text_and_another_seed_another() {
    let grammar = Grammar::load().unwrap();
    let text = |seed| draw::program(&grammar, seed).text();
    for seed in 0..50 {
        assert_eq!(text(seed), text(seed));
    }
    let all: HashSet<String> = (0..500).map(text).collect();
    assert!(all.len() > 498, "{}", all.len());
}

#[test]
fn what_is_drawn_is_within_limits_begins_later_sequences_and_is_read_again() {
    let grammar = Grammar::load().unwrap();
    let limits = &grammar.limits;
    assert_eq!(
        (limits.sequences, limits.sequence_ops, limits.bytes),
        (SEQUENCES, SEQUENCE_OPS, BYTES)
    );
    for seed in 0..500 {
        let program = draw::program(&grammar, seed);
        assert_eq!(Program::parse(&program.text()).unwrap(), program);
        let work: usize = program.work().iter().sum();
        assert!(work <= limits.work, "{work}: {}", program.text());
        for (n, ops) in program.sequences.iter().enumerate() {
            for op in ops {
                let (name, numbers) = parts(op).unwrap();
                let arguments = &grammar.op[name];
                assert_eq!(numbers.len(), arguments.len(), "{op}");
                let begun = numbers.first().filter(|_| arguments == "q");
                let fine = |k: &u64| *k > n as u64 && *k < program.sequences.len() as u64;
                assert!(begun.is_none_or(fine), "{op} in {n}");
            }
        }
    }
}

#[test]
fn work_is_ops_by_how_often_they_are_begun() {
    let program = Program::parse("th1 th1 fo2 y|th2 w0.0.1.0|y y y").unwrap();
    assert_eq!(program.work(), [4, 4, 9]);
    // A start does not count if its target is the starting sequence itself, an earlier sequence or a missing sequence.
    let program = Program::parse("y|th1 th0 th7 y").unwrap();
    assert_eq!(program.work(), [1, 0]);
}

#[test]
fn ops_are_left_out_by_number_and_sequences_stay() {
    let program = Program::parse("ma0.4 th1 j|w0.0.1.0|r0.0.1.2 y").unwrap();
    assert_eq!(program.ops(), 6);
    let rest = program.without(&[true, false, false, false, true, false]);
    assert_eq!(rest.text(), "ma0.4||r0.0.1.2");
    assert_eq!(Program::parse(&rest.text()).unwrap(), rest);
    for wrong in [
        "ma0.4 7",
        "w0..1",
        "w0.0.",
        "a-1",
        &"|".repeat(16),
        &"y ".repeat(201),
    ] {
        assert!(Program::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_failing_program_becomes_as_short_as_it_can_be() {
    let grammar = Grammar::load().unwrap();
    let mut program = draw::program(&grammar, 1);
    let of_slot_3 = |op: &String| parts(op).is_some_and(|(_, numbers)| numbers.first() == Some(&3));
    for ops in &mut program.sequences {
        ops.retain(|op| !of_slot_3(op));
    }
    let middle = program.sequences[0].len() / 2;
    program.sequences[0].insert(middle, "ad3.5.9".into());
    program.sequences[0].insert(0, "ma3.40".into());
    let last = program.sequences.len() - 1;
    program.sequences[last].push("w3.7.2.1".into());
    let mut tries = 0;
    let mut fails = |program: &Program| {
        tries += 1;
        let all: Vec<_> = program
            .sequences
            .iter()
            .flatten()
            .filter_map(|op| parts(op))
            .collect();
        let has = |name, least: &[u64]| {
            let at_least = |numbers: &[u64]| numbers.iter().zip(least).all(|(n, m)| n >= m);
            all.iter()
                .any(|(other, numbers)| *other == name && at_least(numbers))
        };
        Ok(has("ma", &[3, 8]) && has("ad", &[3, 5, 1]) && has("w", &[3, 1]))
    };
    let short = reduce(&program, &mut fails).unwrap();
    assert_eq!(short.ops(), 3, "{}", short.text());
    assert_eq!(short.sequences.len(), program.sequences.len());
    for left in ["ma3.8", "ad3.5.1", "w3.1."] {
        assert!(short.text().contains(left), "{}", short.text());
    }
    assert!(tries < 400, "{tries}");
    let mut never = |_: &Program| Ok(false);
    assert!(reduce(&program, &mut never).is_err());
    let mut always = |_: &Program| Ok(true);
    assert_eq!(reduce(&program, &mut always).unwrap().ops(), 0);
}

/// Prints programs to try out: `CHAOS_SEEDS=100..150 cargo test ... print_programs -- --ignored --nocapture`.
#[test]
#[ignore = "prints programs to try out"]
fn print_programs() {
    let grammar = Grammar::load().unwrap();
    let seeds = std::env::var("CHAOS_SEEDS").unwrap_or("0..50".into());
    let (from, to) = seeds.split_once("..").unwrap();
    for seed in from.parse::<u64>().unwrap()..to.parse().unwrap() {
        println!("@{seed} {}", draw::program(&grammar, seed).text());
    }
}
