// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known forms of results that cannot be imported, each with its name and the remedy.

use super::{cyclictest, lines_with};

const HIST: &str = "use the output of `rtla timerlat hist`, best with -u";
const LINES: &str = "use the output of cyclictest, whose lines have P: and I:";

/// A known form: test for one of its lines, description, and remedy.
struct Known {
    is: fn(&str) -> bool,
    what: &'static str,
    help: &'static str,
}

const KNOWN: [Known; 7] = [
    Known {
        is: |line| {
            line.contains("# RTLA osnoise histogram") || line.contains("Operating System Noise")
        },
        what: "rtla osnoise: no experiment here measures noise",
        help: HIST,
    },
    Known {
        is: |line| line.contains("Hardware-related Noise"),
        what: "rtla hwnoise: no experiment here measures noise",
        help: HIST,
    },
    Known {
        is: |line| line.starts_with("# tracer: timerlat") || line.starts_with("# tracer: osnoise"),
        what: "a trace of the timerlat or osnoise tracer, not a result of rtla",
        help: HIST,
    },
    Known {
        is: |line| cyclictest::is_line(line) && !line.contains(" I:"),
        what: "signaltest: no experiment here measures round trips of signals",
        help: LINES,
    },
    Known {
        is: |line| cyclictest::is_line(line) && !line.contains(" P:"),
        what: "cyclicdeadline: no experiment here measures SCHED_DEADLINE",
        help: LINES,
    },
    Known {
        is: |line| line.starts_with('#') && line.contains(" -> #") && line.contains(", Min "),
        what: "ptsematest, svsematest, pmqtest or sigwaittest: no experiment here measures these latencies",
        help: "use the output of cyclictest",
    },
    Known {
        is: |line| line.starts_with("# Running 'sched/"),
        what: "perf bench: its output does not have all settings that its figure depends on",
        help: "use the output of hackbench; `warmswitch host beside` runs perf and our programs in turn",
    },
];

/// Returns the reason if the text is in one of these forms.
pub fn refused(text: &str) -> Option<String> {
    KNOWN.iter().find_map(|known| {
        let line = *lines_with(text, known.is).first()?;
        Some(format!(
            "line {line}: {}\n  help: {}",
            known.what, known.help
        ))
    })
}
