// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--help` says at the end of each verb: examples, and the document.

use clap::{Command, CommandFactory as _};

/// A verb, its document, commands with what they are for.
type Entry = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const ENTRIES: [Entry; 24] = [
    (
        "bench",
        "CONTRIBUTING.md",
        &[
            (
                "bench",
                "the simulator's speed, beside QEMU's where installed",
            ),
            (
                "bench --against ../before",
                "this build against another one's, in pairs",
            ),
        ],
    ),
    (
        "boot",
        "docs/use/GUESTS.md",
        &[
            ("boot", "a shell on the board; Ctrl-A x leaves"),
            (
                "boot --board omap1610 --kernel fcse-guaranteed",
                "on another board, with FCSE",
            ),
        ],
    ),
    (
        "cc",
        "docs/use/GUESTS.md",
        &[
            (
                "cc -O2 -o hello hello.c",
                "for a board; then: warmswitch guest --add hello -- hello",
            ),
            (
                "cc --for flat -O2 -o hello hello.c",
                "for a kernel without address spaces",
            ),
        ],
    ),
    (
        "coherence",
        "docs/use/COHERENCE.md, docs/use/CHAOS.md",
        &[
            (
                "coherence -- mm_suite --quick",
                "who forgot a clean, an invalidate or a drain",
            ),
            (
                "coherence --mutant pte-no-clean -- mm_suite --only recycled_tables",
                "with a bug put in",
            ),
            (
                "coherence --chaos-seeds 0..200 -- mm_chaos",
                "races that nobody wrote a test for",
            ),
        ],
    ),
    (
        "compare",
        "README.md, docs/understand/METHOD.md",
        &[
            (
                "compare",
                "the main job: kernels side by side, and a report",
            ),
            (
                "compare --with product.log --nearest sam9x60",
                "your own board's figures beside them",
            ),
        ],
    ),
    (
        "completions",
        "README.md",
        &[(
            "completions bash > ~/.local/share/bash-completion/completions/warmswitch",
            "for your shell",
        )],
    ),
    (
        "coverage",
        "docs/log/REACHED.md",
        &[(
            "coverage -- mm_suite --quick",
            "which places that maintain caches and TLB were reached",
        )],
    ),
    (
        "debug",
        "docs/use/DEBUG.md",
        &[("debug", "waits for gdb, and prints the line that starts it")],
    ),
    (
        "explain",
        "docs/use/EXPLAIN.md",
        &[
            (
                "explain 71a4",
                "a stored run again, and its worst latency taken apart",
            ),
            ("explain 71a4 --only --worst 5", "only its latencies"),
        ],
    ),
    (
        "gage",
        "docs/understand/METHOD.md",
        &[(
            "gage switch-cost --seeds 3",
            "how well it measures: gage R&R",
        )],
    ),
    (
        "guest",
        "docs/use/GUESTS.md",
        &[
            ("guest -- 'uname -a; free'", "a line for the board's shell"),
            ("guest --add hello -- hello", "your own program"),
            (
                "guest --add-package lua5.4 -- lua5.4 -v",
                "Debian's, with what it depends on",
            ),
            (
                "guest --set caches.dcache_bytes=32K -- cyclictest -l 1000 -q",
                "on a board with larger caches",
            ),
        ],
    ),
    (
        "host",
        "docs/use/HOST.md",
        &[
            ("host ctx", "a ring of tasks, as lat_ctx, on this machine"),
            ("host ioperm", "what I/O permissions cost a switch; x86"),
        ],
    ),
    (
        "kernel",
        "docs/use/GUESTS.md, docs/understand/KERNELS.md",
        &[
            (
                "kernel build 6.12/plain",
                "fetch, verify, patch, configure, build",
            ),
            (
                "kernel check-series fcse",
                "patch for patch: builds, and the same code with FCSE off",
            ),
        ],
    ),
    (
        "list",
        "README.md",
        &[
            ("list", "boards, kernels, workloads, experiments"),
            ("list runs", "what is stored"),
        ],
    ),
    (
        "look",
        "docs/use/LESSON.md, docs/use/DEBUG.md",
        &[(
            "look --add lesson --at load_word --address r0 --svg line.svg -- lesson line",
            "a stale read, seen",
        )],
    ),
    (
        "man",
        "README.md",
        &[("man ~/.local/share/man/man1", "a page for each verb")],
    ),
    (
        "net",
        "docs/use/INSTRUMENTS.md",
        &[
            (
                "net --flood -- sleep 2",
                "a host that pings the board, and a probe in the cable",
            ),
            (
                "net --pcapng frames.pcapng -- udp_period 2 10.0.0.1 1000",
                "a program that sends a packet a millisecond, as stamped at the wire",
            ),
        ],
    ),
    (
        "overhead",
        "docs/use/EXPLAIN.md",
        &[(
            "overhead",
            "what switches cost tasks that work, as in the paper of 2007",
        )],
    ),
    (
        "profile",
        "docs/use/EXPLAIN.md",
        &[
            (
                "profile -- lat_ctx -P -s 0 -n 500 2",
                "cycles by cause, task, function",
            ),
            (
                "profile --worst 3 -- cyclictest -D 2 -p 50 -q -h 1000",
                "latencies taken apart",
            ),
        ],
    ),
    (
        "records",
        "docs/understand/METHOD.md",
        &[(
            "records",
            "do my runs come to the same as on other machines?",
        )],
    ),
    (
        "report",
        "docs/use/EXPORTS.md",
        &[("report switch-cost", "the page, from runs that are there")],
    ),
    (
        "run",
        "docs/understand/METHOD.md, docs/change/ADDING.md",
        &[
            (
                "run cyclictest --quick",
                "an experiment; what is missing is measured",
            ),
            (
                "run cyclictest --quick --board sam9263,sam9x60",
                "boards side by side",
            ),
            (
                "run switch-cost --quick --set caches.dcache_bytes=32K,caches.icache_bytes=32K",
                "with larger caches",
            ),
        ],
    ),
    (
        "scope",
        "docs/use/INSTRUMENTS.md",
        &[(
            "scope --hz 500 --svg screen.svg -- irq_latency 10",
            "pulses into a pin, and how late the answers come",
        )],
    ),
    (
        "table",
        "docs/understand/METHOD.md",
        &[
            (
                "table switch-cost",
                "the last table again, without simulating",
            ),
            (
                "table cyclictest --quick --board sam9263,sam9x60",
                "that of the same options as of run",
            ),
            ("table switch-cost --markdown", "for a page of yours"),
        ],
    ),
];

/// The command line with its examples.
pub fn cli() -> Command {
    let mut cli = super::Cli::command();
    for (verb, document, examples) in &ENTRIES {
        cli = cli.mut_subcommand(verb, |command| command.after_help(said(document, examples)));
    }
    cli.after_help("README.md begins with two commands; docs/ has a document for each verb, named by its --help.")
}

fn said(document: &str, examples: &[(&str, &str)]) -> String {
    format!("{}\nDocument: {document}", listed("Examples", examples))
}

/// Commands, each with what it is for below it.
pub fn listed(heading: &str, commands: &[(&str, &str)]) -> String {
    let lines = commands
        .iter()
        .map(|(command, what)| format!("  warmswitch {command}\n      {what}\n"));
    format!("{heading}:\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::root;

    #[test]
    fn each_verb_has_examples_that_are_understood_and_a_document_that_is_there() {
        let verbs = super::super::Cli::command();
        let verbs: Vec<&str> = verbs.get_subcommands().map(Command::get_name).collect();
        for verb in &verbs {
            assert!(ENTRIES.iter().any(|entry| entry.0 == *verb), "{verb}");
        }
        assert_eq!(verbs.len(), ENTRIES.len());
        for (_, documents, examples) in &ENTRIES {
            for document in documents.split(", ") {
                assert!(root().join(document).exists(), "{document}");
            }
            for (example, _) in *examples {
                let (line, _) = example.split_once(" > ").unwrap_or((example, ""));
                let line = line.replace("'uname -a; free'", "uname");
                let words = ["warmswitch"].into_iter().chain(line.split(' '));
                let parsed = cli().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }
}
