// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forms that are known and not read, each with its name and what to do instead.

use super::{cyclictest, lines_with};

const HIST: &str = "what `rtla timerlat hist` prints is read, best with -u";

/// A known text: how a line of it looks, what it is, what to do.
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
        what: "rtla osnoise: noise, which no experiment here measures",
        help: HIST,
    },
    Known {
        is: |line| line.contains("Hardware-related Noise"),
        what: "rtla hwnoise: noise, which no experiment here measures",
        help: HIST,
    },
    Known {
        is: |line| line.starts_with("# tracer: timerlat") || line.starts_with("# tracer: osnoise"),
        what: "a trace of the tracers timerlat and osnoise, not a result of rtla's",
        help: HIST,
    },
    Known {
        is: |line| cyclictest::is_line(line) && !line.contains(" I:"),
        what: "signaltest: signals' round trips, which no experiment here measures",
        help: "cyclictest's lines, with P: and I:, are read",
    },
    Known {
        is: |line| cyclictest::is_line(line) && !line.contains(" P:"),
        what: "cyclicdeadline: deadlines of SCHED_DEADLINE, which no experiment here measures",
        help: "cyclictest's lines, with P: and I:, are read",
    },
    Known {
        is: |line| line.starts_with('#') && line.contains(" -> #") && line.contains(", Min "),
        what: "ptsematest, svsematest, pmqtest or sigwaittest, whose latencies no experiment here measures",
        help: "cyclictest's output is read",
    },
    Known {
        is: |line| line.starts_with("# Running 'sched/"),
        what: "perf bench, which does not say all that decides its figure",
        help: "hackbench's text is read; `warmswitch host beside` has perf and ours in turn",
    },
];

/// Why a text is not read, when it is one of these.
pub fn refused(text: &str) -> Option<String> {
    KNOWN.iter().find_map(|known| {
        let line = *lines_with(text, known.is).first()?;
        Some(format!(
            "line {line}: {}\n  help: {}",
            known.what, known.help
        ))
    })
}
