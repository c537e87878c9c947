// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the exports of cyclictest runs with the files that Debian's cyclictest writes on a board.

use base::boards;
use results::outputs;
use results::runs::for_tests::made_up_runs;
use results::runs::markers;
use serde_json::Value;
use session::boot::Recipe;
use session::session::Session;
use supply::kernel;

/// Runs the program in a guest, and returns its JSON and its text.
fn printed(session: &mut Session, command: &str) -> (Value, String) {
    let measured = session.run_guest(command, 60.0).unwrap();
    let console = String::from_utf8_lossy(&measured.console).replace('\r', "");
    let (output, status) = markers::between_markers(&console).unwrap();
    assert_eq!(status, 0, "{output}");
    let (json, text) = output.split_at(output.find("# Histogram").unwrap());
    let json = &json[json.find('{').unwrap()..];
    (serde_json::from_str(json).unwrap(), text.to_string())
}

/// Returns the JSON export and the text export of a run that printed `text`.
fn exported(command: &str, release: &str, text: &str) -> (Value, String) {
    let mut run = made_up_runs().remove(0);
    run.provenance.command = command.into();
    run.provenance.kernel_version = release.into();
    run.kind = "cyclictest".into();
    run.output = text.into();
    let files = outputs::named("cyclictest").unwrap().exports(&[run]);
    let ending = |end: &str| {
        let file = files.iter().find(|(name, _)| name.ends_with(end));
        &file.unwrap().1
    };
    let json = serde_json::from_str(ending(".json")).unwrap();
    (json, ending(".txt").clone())
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
#[ignore = "needs the kernel"]
fn both_forms_are_what_cyclictest_itself_writes() {
    let kernel = kernel::build(&kernel::Request {
        name: "plain".into(),
        ..kernel::Request::default()
    })
    .unwrap();
    let board = boards::load("sam9263").unwrap().0;
    let boot = Recipe::of("plain").prepare(&board).unwrap().boot();
    let booted = Session::boot(&board, 1, &boot).unwrap();
    // The second command has latencies beyond the last bin of its histogram.
    for bins in [1000, 60] {
        let command = format!("cyclictest -D 1 -p 50 -q -h {bins} --json=-");
        let (theirs, text) = printed(&mut booted.clone(), &command);
        assert_eq!(!text.contains("# Histogram Overflows: 00000"), bins == 60);
        let (ours, our_text) = exported(&command, &kernel.record.release, &text);
        assert_eq!(keys(&ours), keys(&theirs));
        assert_eq!(keys(&ours["sysinfo"]), keys(&theirs["sysinfo"]));
        for key in ["file_version", "cmdline:", "return_code", "num_threads"] {
            assert_eq!(ours[key], theirs[key], "{key}");
        }
        for key in ["sysname", "release", "machine", "realtime"] {
            assert_eq!(ours["sysinfo"][key], theirs["sysinfo"][key], "{key}");
        }
        assert_eq!(ours["resolution_in_ns"], theirs["resolution_in_ns"]);
        let (mut ours, mut theirs) = (ours["thread"].clone(), theirs["thread"].clone());
        if bins == 60 {
            let [ours, theirs] = [&mut ours, &mut theirs].map(|t| t["0"]["avg"].take());
            assert!((ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs() <= 1.0);
        }
        assert_eq!(ours, theirs);
        let known = text.split("# Histogram Overflow at").next().unwrap();
        assert_eq!(our_text, known);
    }
}
