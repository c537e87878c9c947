// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the verdicts on mutants, and of the list of mutants.

use super::*;
use crate::coherence::tests::report;

fn tried(test: Option<&str>, kinds: &[ReportKind]) -> Tried {
    let text = "[[mutant]]\nname='m'\nfunction='f'\nwhy='w'\nexpect='stale-read'\ntest='t'\n\
                change={ skip-call = { callee = 'c', which = 1 } }\n";
    let path = std::env::temp_dir().join(format!(
        "warmswitch-tried-{}-{:?}.toml",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, text).unwrap();
    let mut mutant = supply::mutant::load(&path).unwrap().remove(0);
    std::fs::remove_file(&path).unwrap();
    mutant.test = test.map(str::to_string);
    mutant.survives = test.is_none().then(|| "a flush follows".to_string());
    let reports = kinds.iter().map(|kind| Report {
        kind: *kind,
        ..report()
    });
    Tried {
        mutant,
        victims: Victims::Random,
        reached: 0,
        reports: reports.collect(),
        ended: RunEnd::Finished(Some(1)),
    }
}

#[test]
fn a_mutant_is_found_missed_or_survives_by_its_reports() {
    let other = ReportKind::StaleInstruction;
    for (test, wrongs, verdict) in [
        (
            Some("t"),
            &[other, ReportKind::StaleRead][..],
            Verdict::Found,
        ),
        (Some("t"), &[other], Verdict::FoundAsOther),
        (Some("t"), &[], Verdict::Missed),
        (None, &[], Verdict::Survived),
        (None, &[other], Verdict::FoundAfterAll),
    ] {
        assert_eq!(tried(test, wrongs).verdict(), verdict);
    }
    for (wrongs, verdict) in [
        (&[][..], Verdict::Survived),
        (&[ReportKind::StaleRead], Verdict::Found),
        (&[other], Verdict::FoundAsOther),
    ] {
        let mut t = tried(None, wrongs);
        t.mutant.chance = t.mutant.survives.take();
        assert_eq!(t.verdict(), verdict);
    }
}

/// For each suppression, either a mutant removes another operation from the same functions, or `no_mutant` gives the
/// reason why no mutant does so.
#[test]
fn every_suppression_has_a_mutant_beside_it_that_is_to_be_reported() {
    use crate::coherence::suppress::{self, SERIES};
    let entries = suppress::load(&suppress::list(SERIES, "coherence-suppressions.toml"));
    let entries = entries.unwrap();
    let lists = [
        "mutants.toml",
        "mutants-arm920t.toml",
        "mutants-xscale.toml",
    ];
    let mutants = lists.map(|file| supply::mutant::load(&suppress::list(SERIES, file)));
    let mutants: Vec<Mutant> = mutants.into_iter().flat_map(Result::unwrap).collect();
    for entry in &entries {
        let name = &entry.name;
        let all = mutants.iter();
        let beside: Vec<_> = all.filter(|m| m.beside.as_ref() == Some(name)).collect();
        let excused = entry.no_mutant.is_some();
        assert!(
            beside.is_empty() == excused,
            "{name}: needs a mutant beside it or no_mutant, and not both"
        );
        let are_reported = beside.iter().all(|m| m.test.is_some());
        assert!(are_reported, "{name}: a mutant beside it has no test");
    }
    let is_unknown = |m: &&Mutant| {
        m.beside
            .as_ref()
            .is_some_and(|b| entries.iter().all(|e| e.name != *b))
    };
    let unknown: Vec<_> = mutants.iter().filter(is_unknown).map(|m| &m.name).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_report_has_to_name_the_function_or_the_list_says_why_not() {
    let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "f")]);
    let mut t = tried(Some("t"), &[ReportKind::StaleRead]);
    assert_eq!((t.named(&names), t.is_as_said(&names)), (None, false));
    t.mutant.unnamed = Some("it leaves no trace".to_string());
    assert!(t.is_as_said(&names));
    t.mutant.unnamed = None;
    t.reports[0].trace.written = vec![0xc000_2010];
    assert_eq!(
        (t.named(&names), t.is_as_said(&names)),
        (Some("writer"), true)
    );
    assert!(!tried(None, &[ReportKind::StaleRead]).is_as_said(&names));
    let mut survivor = tried(None, &[]);
    assert!(survivor.is_as_said(&names));
    survivor.ended = RunEnd::BootLimit;
    assert!(!survivor.is_as_said(&names));
    survivor.mutant.chance = survivor.mutant.survives.take();
    assert!(survivor.is_as_said(&names));
}

#[test]
fn the_table_names_both_functions_and_the_reason_of_a_survivor() {
    let names = Names::by_hand(&[(0xc000_1000, "reader")]);
    let all = [
        tried(Some("t"), &[ReportKind::StaleRead, ReportKind::StaleRead]),
        tried(Some("t"), &[]),
        tried(None, &[]),
    ];
    let text = table(&all, &names);
    for part in [
        "reader",
        "user",
        "MISSED: the test ended with 1",
        "survives, but the test ended with 1: a flush follows",
        "3 mutants: 1 reported, 0 reported as another kind, 1 missed; 1 survive as expected, 0 reported unexpectedly",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(json(&all, &names)[0]["used_by"], "reader");
    assert_eq!(
        all[1].line(),
        "m: MISSED; the patched code was executed 0 times"
    );
}
