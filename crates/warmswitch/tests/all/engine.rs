// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the engines: the translator gives the same bytes and cycles as the interpreter, with Linux on the boards.

#[cfg(all(
    feature = "engine",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod alike;
#[cfg(all(
    feature = "engine",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod lockstep;

use crate::commands::warmswitch;
use crate::fcse::output_text;

#[test]
#[cfg(feature = "engine")]
#[ignore = "needs the kernel"]
fn programs_print_and_count_the_same_with_both_engines() {
    let suite = "mm_suite --only fork_cow --only jit_fork --only shared_memory";
    let rings = "lat_ctx -P -s 4 -n 100 -r 1 -l 100 4";
    // Hundreds of processes of all kinds.
    let load = "beside-load sleep 1";
    for (board, kernel, more) in [
        ("sam9263", "fcse-guaranteed", load),
        ("at91rm9200", "fcse-multi", "true"),
        ("ixp425", "fcse-multi", "true"),
    ] {
        let command = format!("{suite}; {rings}; {more}");
        let of = |engine| {
            let options = [
                "guest", "--engine", engine, "--board", board, "--kernel", kernel,
            ];
            let output = warmswitch(&[&options[..], &["--counters", "--", &command]].concat());
            assert!(output.status.success(), "{board}: {}", output_text(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let (one, other) = (of("interpreter"), of("translator"));
        assert!(one.contains("instructions"), "{one}");
        assert_eq!(one, other, "{board}");
    }
}

#[test]
fn an_unknown_engine_is_refused() {
    let output = warmswitch(&["guest", "--engine", "translater", "--", "true"]);
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("a similar value exists: 'translator'"),
        "{text}"
    );
}

#[test]
#[cfg(not(feature = "engine"))]
fn a_program_without_the_translator_says_so_in_one_line() {
    let output = warmswitch(&["list", "boards", "--engine", "translator"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: --engine translator: this program was built without the translator\n"
    );
    for engine in ["auto", "interpreter"] {
        let output = warmswitch(&["list", "boards", "--engine", engine]);
        assert!(output.status.success(), "{}", output_text(&output));
    }
    let help = output_text(&warmswitch(&["list", "--help"]));
    let words: Vec<_> = help.split_whitespace().collect();
    let help = words.join(" ");
    assert!(help.contains("built without the translator"), "{help}");
}
