// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports sections with preemption off: the functions that began them, and their longest durations.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use arm::Mva;
use board::Observed;
use serde_json::{Value, json};
use watch::sections::{COUNT_OFFSET, Preemption, Section, Sections};

use session::session::Session;
use supply::symbols::Symbols;
use supply::variables;

/// Initial preempt count of the first task: PREEMPT_OFFSET.
const FIRST_COUNT: [u8; 4] = [1, 0, 0, 0];
/// Maximum number of functions that a line names for each end of a section.
const CALLERS: usize = 3;
/// Prefixes of functions that switch preemption off on behalf of their callers. The callers are named instead.
const WRAPPERS: &[&str] = &[
    "_raw_spin_",
    "_raw_read_",
    "_raw_write_",
    "preempt_count_add",
    "preempt_count_sub",
    "__local_bh_",
    "rcu_read_",
];

/// Sections that one function began. All fields except `times` describe the longest section.
pub struct Begun {
    /// Number of sections.
    pub times: u64,
    /// Core cycle at the beginning.
    pub from: u64,
    /// Duration of the section without its interrupts, in core cycles.
    pub cycles: u64,
    /// Duration of the interrupts in the section, in core cycles.
    pub interrupts: u64,
    /// Function that began the section, and its callers.
    pub by: Vec<String>,
    /// Function that ended the section, and its callers.
    pub ended: Vec<String>,
    /// Whether another task ended the section.
    pub switched: bool,
    /// Functions of the longest calls in the section, with their core cycles.
    pub within: Vec<(String, u64)>,
}

/// Observes the sections of a booted board from now on.
pub fn watch(
    session: Session,
    vmlinux: Option<&Path>,
) -> Result<(Session<Observed<Sections>>, Symbols)> {
    let symbols = Symbols::of(vmlinux);
    let function = |name: &str| {
        let address = symbols.address(name);
        address.with_context(|| format!("--preempt-off: the kernel has no symbol {name}"))
    };
    let variable = |name: &str| {
        let variable = vmlinux.and_then(|vmlinux| variables::of(vmlinux, name));
        variable.with_context(|| format!("--preempt-off: the kernel has no variable {name}"))
    };
    let idle = variable("init_task")?;
    let count = idle
        .initial
        .get(COUNT_OFFSET as usize..)
        .unwrap_or_default();
    if !count.starts_with(&FIRST_COUNT) {
        bail!(
            "--preempt-off: init_task has no preempt count at offset {COUNT_OFFSET}; \
             kernels with another thread_info are not supported"
        );
    }
    let kernel = Preemption {
        schedule: function("__schedule")?,
        switch_to: function("__switch_to")?,
        idle: idle.address,
        count_offset: COUNT_OFFSET,
    };
    let current = variable("__current")?.address;
    let watched = session.observed_by(|machine| {
        let byte = |at: u32| machine.cpu().debug_read(Mva(at)).unwrap_or_default();
        let task = [0, 1, 2, 3].map(|n| byte(current.wrapping_add(n)));
        Sections::new(kernel, u32::from_le_bytes(task))
    });
    Ok((watched, symbols))
}

/// Returns the sections, grouped by the function that began them. The longest comes first.
pub fn by_function(sections: &Sections, symbols: &Symbols) -> Vec<Begun> {
    let names = |(pc, callers): &(u32, Vec<u32>)| -> Vec<String> {
        let all = std::iter::once(pc).chain(callers);
        let names = all.map(|at| match symbols.name(*at) {
            // Drop the offset within the function.
            Some(name) => name.split('+').next().unwrap_or_default().to_string(),
            None => "?".into(),
        });
        let is_wrapper = |name: &String| WRAPPERS.iter().any(|wrapper| name.starts_with(wrapper));
        names.skip_while(is_wrapper).take(CALLERS).collect()
    };
    let mut all: BTreeMap<String, Begun> = BTreeMap::new();
    for section in sections.all() {
        let Section {
            times,
            from,
            cycles,
            interrupts,
            switched,
            ..
        } = section;
        let within = section.within.iter();
        let within = within.map(|(pc, callers, cycles)| {
            let names = names(&(*pc, callers.clone()));
            (names.into_iter().next().unwrap_or_default(), *cycles)
        });
        let by = names(&section.begun);
        let new = Begun {
            times,
            from,
            cycles,
            interrupts,
            ended: names(&section.ended),
            switched,
            within: within.collect(),
            by,
        };
        let function = new.by.first().cloned().unwrap_or_default();
        match all.get_mut(&function) {
            Some(known) => {
                let times = known.times + times;
                if cycles > known.cycles {
                    *known = new;
                }
                known.times = times;
            }
            None => {
                all.insert(function, new);
            }
        }
    }
    let mut all: Vec<Begun> = all.into_values().collect();
    all.sort_by_key(|begun| std::cmp::Reverse(begun.cycles));
    all
}

/// Renders the table.
pub fn text(all: &[Begun], cpu_hz: u64, top: usize) -> String {
    let times: u64 = all.iter().map(|begun| begun.times).sum();
    let mut text = format!(
        "Preemption was off {times} times. Longest section of each function that began one:\n\n\
         {:>9} {:>13} {:>9}  begun by; ended by\n",
        "us", "+ interrupts", "times"
    );
    let us = |cycles: u64| cycles as f64 * 1e6 / cpu_hz as f64;
    for begun in all.iter().take(top) {
        let switched = if begun.switched {
            ", in another task"
        } else {
            ""
        };
        text.push_str(&format!(
            "{:9.2} {:13.2} {:9}  {}; {}{switched}\n",
            us(begun.cycles),
            us(begun.interrupts),
            begun.times,
            begun.by.join(" < "),
            begun.ended.join(" < ")
        ));
        let within = begun.within.iter();
        let within = within.map(|(function, cycles)| format!("{function} {:.2}", us(*cycles)));
        let within = within.collect::<Vec<_>>().join(", ");
        text.push_str(&format!("{:34}in {within}\n", ""));
    }
    text
}

/// Renders all sections as JSON.
pub fn json(all: &[Begun], cpu_hz: u64, command: &str) -> Value {
    let us = |cycles: u64| cycles as f64 * 1e6 / cpu_hz as f64;
    let one = |begun: &Begun| {
        json!({
            "times": begun.times,
            "from_cycle": begun.from,
            "us": us(begun.cycles),
            "interrupts_us": us(begun.interrupts),
            "begun_by": begun.by,
            "ended_by": begun.ended,
            "switched": begun.switched,
            "within": begun.within.iter().map(|(f, cycles)| json!([f, us(*cycles)])).collect::<Vec<_>>(),
        })
    };
    json!({ "command": command, "sections": all.iter().map(one).collect::<Vec<_>>() })
}
