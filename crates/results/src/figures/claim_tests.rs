// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of claims.

use super::*;

fn measured(kernel: &str, tasks: u32, value: f64) -> Measured {
    Measured::switch(
        Place {
            board: "sam9263".into(),
            kernel: kernel.into(),
            mode: "process".into(),
            series: String::new(),
            axes: [("tasks".to_string(), tasks)].into(),
        },
        value,
    )
}

fn claim(bound: &str) -> Claim {
    let text = format!(
        "text = \"t\"\nsource = \"s\"\nof = {{ kernel = \"fcse\" }}\n\
         to = {{ kernel = \"plain\" }}\n{bound}\n"
    );
    toml::from_str(&text).unwrap()
}

fn figures() -> Vec<Measured> {
    vec![
        measured("plain", 2, 100.0),
        measured("plain", 4, 100.0),
        measured("fcse", 2, 30.0),
        measured("fcse", 4, 60.0),
    ]
}

#[test]
fn the_worst_ratio_decides() {
    let verdict = claim("at_most = 0.5").judge(&figures());
    assert_eq!((verdict.holds, verdict.count), (Some(false), 2));
    let worst = verdict.worst.unwrap();
    assert_eq!((worst.value, &*worst.place), (0.6, "sam9263, tasks 4"));
    assert_eq!(claim("at_most = 0.6").judge(&figures()).holds, Some(true));
    assert_eq!(claim("at_least = 0.3").judge(&figures()).holds, Some(true));
    let least = claim("at_least = 0.4").judge(&figures());
    assert_eq!(
        (least.holds, least.worst.unwrap().value),
        (Some(false), 0.3)
    );
}

#[test]
fn a_claim_about_no_kernel_compares_each_with_itself() {
    let text = "text = \"t\"\nsource = \"s\"\nof = { at = { tasks = 4 } }\n\
                to = { at = { tasks = 2 } }\nat_least = 1.0\n";
    let claim: Claim = toml::from_str(text).unwrap();
    let verdict = claim.judge(&figures());
    assert_eq!((verdict.holds, verdict.count), (Some(true), 2));
}

#[test]
fn a_difference_is_in_the_figures_unit() {
    let verdict = claim("less_by = 50.0").judge(&figures());
    assert_eq!((verdict.holds, verdict.count), (Some(false), 2));
    assert!(verdict.reason().starts_with("Difference in us 40.00"));
    assert_eq!(claim("less_by = 40.0").judge(&figures()).holds, Some(true));
}

#[test]
fn axes_that_a_claim_names_on_both_sides_may_differ() {
    let mut across = claim("at_most = 1.0");
    across.of.at.insert("tasks".into(), 4);
    across.to.at.insert("tasks".into(), 2);
    let verdict = across.judge(&figures());
    assert_eq!((verdict.count, verdict.worst.unwrap().value), (1, 0.6));
}

#[test]
fn a_mode_is_compared_with_itself_unless_the_claim_says_otherwise() {
    let mut threads = figures();
    threads.iter_mut().for_each(|m| {
        m.place.mode = "thread".into();
        (m.value, m.low, m.high) = (10.0, 10.0, 10.0);
    });
    let all = [figures(), threads].concat();
    let verdict = claim("at_most = 1.0").judge(&all);
    assert_eq!((verdict.holds, verdict.count), (Some(true), 4));
    let mut across = claim("at_most = 1.0");
    across.of.mode = Some("process".into());
    across.to.mode = Some("thread".into());
    assert_eq!(across.judge(&all).worst.unwrap().value, 6.0);
}

#[test]
fn intervals_that_reach_over_the_bound_leave_it_open() {
    let mut figures = figures();
    figures[3].low = 40.0;
    figures[3].high = 70.0;
    let verdict = claim("at_most = 0.5").judge(&figures);
    assert_eq!((verdict.holds, verdict.word()), (None, "open"));
    assert!(
        verdict
            .reason()
            .contains("0.60 (0.40 to 0.70), at most 0.5")
    );
    assert_eq!(claim("at_most = 0.7").judge(&figures).holds, Some(true));
    assert_eq!(claim("at_most = 0.35").judge(&figures).holds, Some(false));
}

#[test]
fn four_seeds_or_more_decide_by_ranks_and_not_by_their_range() {
    let with_seeds = |of: &[f64], to: &[f64]| {
        let mut two = vec![figures()[0].clone(), figures()[1].clone()];
        two[1].place = two[0].place.clone();
        let kernels = ["fcse", "plain"];
        for ((m, seeds), kernel) in two.iter_mut().zip([of, to]).zip(kernels) {
            m.place.kernel = kernel.into();
            m.seeds = seeds.to_vec();
            m.low = seeds.iter().copied().fold(f64::MAX, f64::min);
            m.high = seeds.iter().copied().fold(0.0, f64::max);
        }
        two
    };
    let (low, high) = (
        [35.0, 35.5, 36.0, 36.5, 46.0],
        [41.0, 41.5, 42.0, 42.5, 43.0],
    );
    let verdict = |text: &str, of: &[f64], to: &[f64]| {
        let verdict = claim(text).judge(&with_seeds(of, to));
        (verdict.holds, verdict.reason())
    };
    let (holds, reason) = verdict("at_most = 1.0", &low[..4], &high);
    assert_eq!(holds, Some(true), "{reason}");
    assert!(
        reason.contains("by ranks over 4 runs, p = 0.02"),
        "{reason}"
    );
    // One of the five values lies above all values of the other group, so the difference is no longer significant.
    assert_eq!(verdict("at_most = 1.0", &low, &high).0, None);
    assert_eq!(verdict("at_least = 1.0", &low[..4], &high).0, Some(false));
    assert_eq!(verdict("less_by = 4.0", &low[..4], &high).0, Some(true));
    assert_eq!(verdict("less_by = 9.0", &low[..4], &high).0, Some(false));
    let (holds, reason) = verdict("at_most = 1.0", &low[..3], &high);
    assert_eq!(holds, Some(true));
    assert!(reason.contains("by the range of 3 runs"), "{reason}");
}

#[test]
fn pairs_of_runs_decide_what_their_range_cannot() {
    let mut two = vec![figures()[0].clone(), figures()[2].clone()];
    two[0].seeds = vec![30.0, 40.0, 50.0, 60.0, 70.0, 80.0];
    two[1].seeds = two[0].seeds.iter().map(|x| x * 0.95).collect();
    for of in &mut two {
        of.repetitions = (1..=6).map(|seed| (seed, 0)).collect();
    }
    assert_eq!(claim("at_most = 0.97").judge(&two).holds, None);
    let paired = |bound: &str| claim(&format!("paired = true\n{bound}")).judge(&two);
    let verdict = paired("at_most = 0.97");
    assert_eq!(verdict.holds, Some(true));
    assert!(
        verdict
            .reason()
            .contains("0.95 (0.95 to 0.95), at most 0.97, by 6 pairs of runs")
    );
    assert_eq!(paired("at_most = 0.94").holds, Some(false));
    assert_eq!(paired("less_by = 1.4").holds, Some(true));
    assert_eq!(paired("less_by = 4.1").holds, Some(false));
    two[1].seeds[5] = 80.0;
    let paired = |bound: &str| claim(&format!("paired = true\n{bound}")).judge(&two);
    assert_eq!(paired("at_most = 0.97").holds, None);
    // A missing run has no partner. The other pairs stay.
    two[0].seeds.remove(0);
    two[0].repetitions.remove(0);
    two[1].seeds.remove(5);
    two[1].repetitions.remove(5);
    let verdict = claim("paired = true\nat_most = 0.97").judge(&two);
    assert_eq!(verdict.holds, Some(true));
    assert!(
        verdict.reason().contains("by 4 pairs"),
        "{}",
        verdict.reason()
    );
}

#[test]
fn extremes_of_uneven_sides_are_not_judged() {
    let mut two = vec![figures()[0].clone(), figures()[2].clone()];
    for (of, seeds) in two.iter_mut().zip([1, 4]) {
        of.metric = "max";
        of.repetitions = (1..=seeds).map(|seed| (seed, 0)).collect();
    }
    let verdict = claim("at_most = 0.5").judge(&two);
    assert_eq!((verdict.holds, verdict.count, verdict.uneven), (None, 0, 1));
    assert!(
        verdict.reason().contains("from different runs"),
        "{}",
        verdict.reason()
    );
    two.iter_mut().for_each(|of| of.metric = "avg");
    assert_eq!(claim("at_most = 0.5").judge(&two).holds, Some(true));
}

#[test]
fn absurd_bounds_are_refused() {
    for bound in ["at_most = -1.0", "at_least = 0.0", "less_by = nan"] {
        let error = claim(bound).check(&Selectable::default()).unwrap_err();
        assert!(error.to_string().contains("above 0"), "{bound}: {error}");
    }
}

#[test]
fn without_figures_there_is_no_verdict() {
    let verdict = claim("at_most = 0.5").judge(&figures()[..2]);
    assert_eq!((verdict.holds, verdict.count), (None, 0));
}

#[test]
fn a_published_figure_that_does_not_exist_is_named() {
    let beside = PublishedComparison {
        published: "fcse2009.lat_ctx.plain.lo".into(),
        measured: None,
    };
    let published = Published::load().unwrap();
    let error = pairs(&[beside], &[], &published).err().unwrap().to_string();
    assert!(error.contains("fcse2009.lat_ctx.plain.low"), "{error}");
}
