// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of each verb's `--help`: examples, and the name of the document.

use clap::{Command, CommandFactory as _};

/// A verb, its documents, and examples: command and purpose.
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
            ("bench", "the simulator's speed, beside QEMU's if installed"),
            (
                "bench --against ../before",
                "the ratio of this build's CPU time to that of another build",
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
                "a program for the boards; warmswitch guest --add hello -- hello runs it",
            ),
            (
                "cc --for flat -O2 -o hello hello.c",
                "a program for kernels without address spaces",
            ),
        ],
    ),
    (
        "coherence",
        "docs/use/COHERENCE.md, docs/use/CHAOS.md",
        &[
            (
                "coherence -- mm_suite --quick",
                "find a missing clean, invalidate or drain",
            ),
            (
                "coherence --mutant pte-no-clean -- mm_suite --only recycled_tables",
                "the report of a known bug: one clean is removed from the kernel",
            ),
            (
                "coherence --chaos-seeds 0..200 -- mm_chaos",
                "find races that no test meets",
            ),
        ],
    ),
    (
        "compare",
        "README.md, docs/understand/METHOD.md",
        &[
            (
                "compare",
                "the main job: three kernels side by side, and a report",
            ),
            (
                "compare --with product.log --nearest sam9x60",
                "your own board's figures beside the simulated ones",
            ),
        ],
    ),
    (
        "completions",
        "README.md",
        &[(
            "completions bash > ~/.local/share/bash-completion/completions/warmswitch",
            "completions for bash",
        )],
    ),
    (
        "coverage",
        "docs/log/REACHED.md",
        &[(
            "coverage -- mm_suite --quick",
            "the cache and TLB maintenance that the command reached",
        )],
    ),
    (
        "debug",
        "docs/use/DEBUG.md",
        &[(
            "debug",
            "wait for gdb, and print the command that starts it",
        )],
    ),
    (
        "explain",
        "docs/use/EXPLAIN.md",
        &[
            (
                "explain 71a4",
                "repeat a stored run, and take its worst latency apart",
            ),
            (
                "explain 71a4 --only --worst 5",
                "only its five worst latencies",
            ),
        ],
    ),
    (
        "gage",
        "docs/understand/METHOD.md",
        &[(
            "gage switch-cost --seeds 3",
            "measurement error, by gage R&R",
        )],
    ),
    (
        "guest",
        "docs/use/GUESTS.md",
        &[
            ("guest -- 'uname -a; free'", "a line for the guest's shell"),
            ("guest --add hello -- hello", "your own program"),
            (
                "guest --add-package lua5.4 -- lua5.4 -v",
                "a Debian package with its dependencies",
            ),
            (
                "guest --set caches.dcache_bytes=32K -- cyclictest -l 1000 -q",
                "on a board with a larger data cache",
            ),
        ],
    ),
    (
        "host",
        "docs/use/HOST.md",
        &[
            (
                "host ctx",
                "context switches on this machine, as lat_ctx measures them",
            ),
            ("host ioperm", "cost of I/O permissions at a switch (x86)"),
        ],
    ),
    (
        "kernel",
        "docs/use/GUESTS.md, docs/understand/KERNELS.md",
        &[
            (
                "kernel build 6.12/plain",
                "fetch, verify, patch, configure and build a kernel",
            ),
            (
                "kernel check-series 6.12/fcse-guaranteed",
                "each prefix builds and passes a test; with FCSE off, the code is plain Linux",
            ),
        ],
    ),
    (
        "list",
        "README.md",
        &[
            ("list", "boards, kernels, workloads and experiments"),
            ("list runs", "stored runs"),
        ],
    ),
    (
        "look",
        "docs/use/LESSON.md, docs/use/DEBUG.md",
        &[(
            "look --add lesson --at load_word --address r0 --svg line.svg -- lesson line",
            "a cache line before and after the load that fills it",
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
                "a host pings the board, and a probe stamps the frames",
            ),
            (
                "net --pcapng frames.pcapng -- udp_period 2 10.0.0.1 1000",
                "a program sends a packet every millisecond; the file has the probe's time stamps",
            ),
        ],
    ),
    (
        "overhead",
        "docs/use/EXPLAIN.md",
        &[(
            "overhead",
            "what switches cost two working tasks, as in the paper of 2007",
        )],
    ),
    (
        "profile",
        "docs/use/EXPLAIN.md",
        &[
            (
                "profile -- lat_ctx -P -s 0 -n 500 2",
                "cycles by cause, task and function",
            ),
            (
                "profile --worst 3 -- cyclictest -D 2 -p 50 -q -h 1000",
                "the three worst latencies taken apart",
            ),
        ],
    ),
    (
        "records",
        "docs/understand/METHOD.md",
        &[(
            "records",
            "do the runs on this machine give the recorded results?",
        )],
    ),
    (
        "report",
        "docs/use/EXPORTS.md",
        &[("report switch-cost", "the HTML report of the stored runs")],
    ),
    (
        "run",
        "docs/understand/METHOD.md, docs/change/ADDING.md",
        &[
            (
                "run cyclictest --quick",
                "an experiment; only missing points are measured",
            ),
            (
                "run cyclictest --quick --board sam9263,sam9x60",
                "two boards side by side",
            ),
            (
                "run switch-cost --quick --set caches.dcache_bytes=32K,caches.icache_bytes=32K",
                "larger caches, beside the unchanged board",
            ),
        ],
    ),
    (
        "scope",
        "docs/use/INSTRUMENTS.md",
        &[(
            "scope --kernel plain-latency --hz 1000 --seconds 12 --svg screen.svg -- latency-under-load 10 1",
            "pulses into a pin, and the latency of the answers under load",
        )],
    ),
    (
        "table",
        "docs/understand/METHOD.md",
        &[
            (
                "table switch-cost",
                "the tables of the last campaign, without simulating",
            ),
            (
                "table cyclictest --quick --board sam9263,sam9x60",
                "the tables of `run` with these options",
            ),
            (
                "table switch-cost --markdown",
                "Markdown, for a page of yours",
            ),
        ],
    ),
];

/// Returns the command line, with examples in the help.
pub fn cli() -> Command {
    let mut cli = super::Cli::command();
    for (verb, document, examples) in &ENTRIES {
        cli = cli.mut_subcommand(verb, |command| {
            command.after_help(after_help(document, examples))
        });
    }
    cli.after_help(
        "Start with README.md. The --help of each verb has examples and names its document.",
    )
}

fn after_help(document: &str, examples: &[(&str, &str)]) -> String {
    format!("{}\nDocument: {document}", listed("Examples", examples))
}

/// Lists commands under a heading, each with its purpose on the next line.
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
