// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use results::figures::claim::Claim;
use results::figures::selector::Selector;

const GOOD: &str = r#"
    format = 1
    title = "t"
    workload = "lat_ctx"
    kernels = ["6.12/plain"]
    limit_s = 60.0
    samples = 11
    hops = 100
    modes = ["process", "thread"]
    [[plan]]
    board = "sam9263"
    size_kb = [0, 4]
    tasks = [2, 16]
    [[quick]]
    board = "sam9263"
    size_kb = [0]
    tasks = [2]
"#;

fn parsed(text: &str) -> Result<Experiment> {
    parse(text, Path::new("e/experiment.toml"))
}

#[test]
fn the_points_are_the_product_of_the_axes_in_the_files_order() {
    let e = parsed(GOOD).unwrap();
    let points = e.points(false, &[], None);
    assert_eq!(points.len(), 8);
    assert_eq!(
        (
            points[0].axis("size_kb"),
            points[0].axis("tasks"),
            &*points[0].mode
        ),
        (0, 2, "process")
    );
    assert_eq!(
        (
            points[7].axis("size_kb"),
            points[7].axis("tasks"),
            &*points[7].mode
        ),
        (4, 16, "thread")
    );
    assert_eq!(e.points(true, &["s3c24a0".into()], Some(&[7])).len(), 2);
    assert_eq!(
        e.points(true, &["s3c24a0".into()], Some(&[7]))[0].board,
        "s3c24a0"
    );
}

#[test]
fn layouts_of_the_code_are_points_of_one_place() {
    let e = parsed(&GOOD.replacen("tasks = [2, 16]", "tasks = [2]\nlayouts = [0, 3]", 1)).unwrap();
    let points = e.points(false, &[], None);
    assert_eq!(points.len(), 8);
    let (linked, moved) = (&points[0], &points[1]);
    assert_eq!(linked.built_kernel(), "6.12/plain");
    assert_eq!(moved.built_kernel(), "6.12/plain@3");
    assert_eq!(linked.place(), moved.place());
    for (layouts, says) in [
        ("[]", "layouts must not be empty"),
        ("[1, 1]", "1 occurs twice"),
        ("[1000]", "1000 is out of range; 0 to 999 are allowed"),
    ] {
        let text = GOOD.replacen("[[plan]]", &format!("[[plan]]\nlayouts = {layouts}"), 1);
        let error = format!("{:#}", parsed(&text).unwrap_err());
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_ring_gets_at_least_the_hops_asked_for() {
    let e = parsed(GOOD).unwrap();
    let points = e.points(false, &[], None);
    let line = "x -g {pins} -s {size_kb} -n {rounds} -r {samples} {tasks}".to_string();
    let calls: BTreeMap<String, String> = [
        ("process".to_string(), line.clone()),
        ("thread".to_string(), line + " {what}"),
    ]
    .into();
    assert_eq!(
        e.command(&calls, &points[0], "pl061@101e4000").unwrap(),
        "x -g pl061@101e4000 -s 0 -n 50 -r 11 2"
    );
    let error = e.command(&calls, &points[7], "").unwrap_err().to_string();
    assert!(
        error.contains("-n 7") && error.contains("{what}"),
        "{error}"
    );
    assert!(e.command(&BTreeMap::new(), &points[0], "").is_err());
}

#[test]
fn an_unknown_key_is_named_with_its_file_and_the_nearest_key() {
    for (from, to, says) in [
        ("samples", "sample", "did you mean \"samples\"?"),
        (
            "board = \"sam9263\"",
            "bord = \"sam9263\"",
            "plan.bord: unknown key, or an axis that is not a list of numbers; \
             did you mean \"board\"?",
        ),
    ] {
        let error = format!("{:#}", parsed(&GOOD.replacen(from, to, 1)).unwrap_err());
        assert!(error.contains("e/experiment.toml"), "{error}");
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn an_axis_that_no_command_line_has_is_unknown() {
    let e = parsed(&GOOD.replacen("size_kb", "size_kB", 1)).unwrap();
    let calls = [("process".to_string(), "x {size_kb} {tasks}".to_string())];
    let error = e
        .command(&calls.into(), &e.points(false, &[], None)[0], "")
        .unwrap_err()
        .to_string();
    let says = "has the word {size_kB}; did you mean \"size_kb\"?";
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_plan_may_name_fewer_kernels_but_no_others() {
    let two = GOOD.replace("[\"6.12/plain\"]", "[\"6.12/plain\", \"x\"]");
    assert_eq!(parsed(&two).unwrap().points(true, &[], None).len(), 4);
    let one = two.clone() + "kernels = [\"x\"]\n";
    assert_eq!(parsed(&one).unwrap().points(true, &[], None).len(), 2);
    let other = two + "kernels = [\"y\"]\n";
    assert!(format!("{:#}", parsed(&other).unwrap_err()).contains("\"y\""));
}

#[test]
fn pairs_are_of_one_image() {
    let two = GOOD.replace(
        "[\"6.12/plain\"]",
        "[\"6.12/fcse-guaranteed\", \"6.12/plain\"]",
    );
    let claim = |of: &str| {
        let claim = format!(
            "[[claim]]\ntext = \"t\"\nsource = \"s\"\nof = {{ kernel = \"{of}\" }}\n\
             to = {{ kernel = \"6.12/fcse-guaranteed\" }}\npaired = true\nat_most = 1.0\n"
        );
        parsed(&(two.clone() + &claim)).unwrap().check_parts()
    };
    let error = format!("{:#}", claim("6.12/plain").unwrap_err());
    assert!(error.contains("both kernels must be one image"), "{error}");
    assert!(claim("6.12/fcse-guaranteed").is_ok());
}

#[test]
fn a_kernel_of_the_experiment_is_another_one_with_more_words() {
    let off = "[kernel.\"6.12/off\"]\nof = \"6.12/fcse-guaranteed\"\ncommand_line = \"fcse=off\"\n";
    let with = |kernels: &str, own: &str| {
        let text = GOOD.replace("[\"6.12/plain\"]", kernels) + own;
        let e = parsed(&text).unwrap();
        let error = e.check_parts().err().map(|error| format!("{error:#}"));
        (e, error.unwrap_or_default())
    };
    let (e, error) = with("[\"6.12/off\"]", off);
    assert_eq!(error, "");
    let point = Point {
        layout: 3,
        ..e.points(true, &[], None)[0].clone()
    };
    let kernel = e.own_kernels.of(&point);
    assert_eq!(kernel, ("6.12/fcse-guaranteed@3".to_string(), "fcse=off"));

    let with_option = off.replace("fcse-guaranteed", "fcse-guaranteed+RSEQ=y");
    let (e, error) = with("[\"6.12/off\"]", &with_option.replace("fcse=off", ""));
    assert_eq!(error, "");
    let kernel = e.own_kernels.of(&point);
    assert_eq!(kernel, ("6.12/fcse-guaranteed+RSEQ=y@3".to_string(), ""));

    let both = "[\"6.12/fcse-guaranteed\", \"6.12/off\"]";
    let claim = "[[claim]]\ntext = \"t\"\nsource = \"s\"\npaired = true\nat_most = 1.0\n\
        of = { kernel = \"6.12/off\" }\nto = { kernel = \"6.12/fcse-guaranteed\" }\n";
    assert_eq!(with(both, &format!("{off}{claim}")).1, "");

    for (from, to, says) in [
        (
            "6.12/off\"]\n",
            "6.12/of\"]\n",
            "not in `kernels`; did you mean \"6.12/off\"?",
        ),
        (
            "fcse-guaranteed",
            "fcse-garanteed",
            "kernel.\"6.12/off\".of",
        ),
        ("fcse=off", " ", "it changes nothing"),
        ("fcse-guaranteed", "fcse-guaranteed+RSEQ", "SYMBOL=VALUE"),
    ] {
        let (_, error) = with(both, &off.replace(from, to));
        assert!(error.contains(says), "{error}");
    }
    // With the layout in the name, the words on the command line would be lost.
    let (_, error) = with("[\"6.12/off\", \"6.12/off@3\"]", off);
    assert!(error.contains("into `layouts` of a plan"), "{error}");
    let taken = off.replace("6.12/off", "6.12/plain");
    let (_, error) = with("[\"6.12/plain\"]", &taken);
    assert!(error.contains("choose another"), "{error}");
}

#[test]
fn absurd_values_are_refused() {
    for (from, to) in [
        ("limit_s = 60.0", "limit_s = -1.0"),
        ("tasks = [2, 16]", "tasks = [1]"),
        ("samples = 11", "samples = 0"),
        ("format = 1", "format = 2"),
        ("size_kb = [0, 4]", "size_kb = [9999]"),
        ("size_kb = [0, 4]", "size_kb = []"),
    ] {
        assert!(parsed(&GOOD.replacen(from, to, 1)).is_err(), "{to}");
    }
}

#[test]
fn what_a_kernel_cannot_run_is_not_planned_and_is_said() {
    let two = GOOD.replace("[\"6.12/plain\"]", "[\"6.12/plain\", \"6.12/flat\"]");
    let modes = parsed(&two).unwrap().modes;
    let not = |kernel: &str, mode: &str| {
        parsed(&format!(
            "{two}[[not_applicable]]\nkernel = \"{kernel}\"\nmodes = [\"{mode}\"]\nreason = \"it forks\"\n"
        ))
    };
    let all = parsed(&two).unwrap().points(false, &[], None);
    let e = not("6.12/flat", &modes[0]).unwrap();
    let left = e.points(false, &[], None);
    let removed = all.iter().filter(|point| !left.contains(point));
    assert!(
        removed
            .clone()
            .all(|p| p.kernel == "6.12/flat" && p.mode == modes[0])
    );
    assert!(removed.count() > 0);
    let shown = e.not_applicable[0].to_string();
    assert_eq!(shown, format!("flat, {}: it forks", modes[0]));
    for (kernel, mode, named) in [
        ("6.12/flta", &*modes[0], "6.12/flat"),
        ("6.12/flat", "proces", "no mode"),
    ] {
        let error = format!("{:#}", not(kernel, mode).unwrap_err());
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn what_cannot_be_measured_is_named_with_the_nearest_name() {
    let known = Experiment::load("irq_rate").unwrap().known();
    let check = |text: &str| toml::from_str::<Selector>(text).unwrap().check(&known);
    check("series = \"rising\"\nmetric = \"answered\"\nat = { hz = 1000 }").unwrap();
    for (text, says) in [
        ("board = \"sam9264\"", "did you mean \"sam9263\"?"),
        ("kernel = \"6.12/plain-latenzy\"", "\"6.12/plain-latency\"?"),
        ("series = \"raising\"", "did you mean \"rising\"?"),
        ("metric = \"awg\"", "did you mean \"avg\"?"),
        ("metric = \"time\"", "metric \"time\" is not in"),
        ("at = { hertz = 1000 }", "no axis \"hertz\""),
        (
            "at = { hz = 1001 }",
            "hz: 1001 is in no plan; the plans have: ",
        ),
    ] {
        let error = check(text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_claim_names_what_the_experiment_measures_and_one_bound() {
    let known = Experiment::load("cyclictest").unwrap().known();
    let checked = |bound: &str| {
        let text = format!(
            "text = \"t\"\nsource = \"s\"\nof = {{ kernel = \"fcse\" }}\nto = {{ kernel = \"plain\" }}\n{bound}\n"
        );
        let claim: Claim = toml::from_str(&text).unwrap();
        let error = claim.check(&known).unwrap_err();
        format!("{error:#}")
    };
    assert!(checked("at_most = 1.0").contains("kernel \"fcse\" is not in"));
    assert!(checked("").contains("give exactly one of"));
    assert!(checked("at_most = 1.0\nat_least = 0.1").contains("give exactly one of"));
}

#[test]
fn names_and_words_of_own_kernels_are_one_line_of_text() {
    for (name, of, words, says) in [
        ("mine/a,b", "6.12/plain", "a=1", "not a name"),
        ("mine/\\u001b[31mred", "6.12/plain", "a=1", "not a name"),
        ("mine/two\\nlines", "6.12/plain", "a=1", "not a name"),
        ("", "6.12/plain", "a=1", "not a name"),
        ("a/b/c", "6.12/plain", "a=1", "not a name"),
        // This name would mean layout 3 of the kernel `mine/k`.
        ("mine/k@3", "6.12/plain", "a=1", "not a name"),
        ("mine/k", "6.12/plain@3", "a=1", "no kernel"),
        ("mine/k", "6.12/plain+RSEQ=y@3", "a=1", "no kernel"),
        ("mine/k", "6.12/plain", "a=1\\u0000", "control characters"),
        (
            "mine/k",
            "6.12/plain",
            &"a".repeat(1024),
            "at most 1023 bytes",
        ),
    ] {
        let own = format!("[kernel.\"{name}\"]\nof = \"{of}\"\ncommand_line = \"{words}\"\n");
        let text = GOOD.replace("[\"6.12/plain\"]", &format!("[\"{name}\"]")) + &own;
        let e = parsed(&text).unwrap();
        let error = format!("{:#}", e.check_parts().unwrap_err());
        assert!(error.contains(says), "{name:?}: {error}");
    }
}
