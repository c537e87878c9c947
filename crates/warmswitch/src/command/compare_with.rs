// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the boards with machines that were measured elsewhere. The boards' figures come from runs on this machine,
//! or else from the records.

use anyhow::Result;

use crate::campaign::experiment::Experiment;
use crate::report::recorded;
use host::import::machine::Machine;
use results::figures::figure::Measured;
use results::render::part::Part;

/// A table that belongs to an experiment's figures.
pub struct ComparedTable {
    pub experiment: &'static str,
    from_record: bool,
    pub part: Part,
}

/// Tables that compare a machine's figures with the boards' figures.
#[derive(Default)]
pub struct Comparison {
    pub placed: Vec<ComparedTable>,
    /// Names of figures that have no counterpart on the boards.
    pub notes: Vec<String>,
}

/// Returns tables for each experiment that measures the machine's figures on the boards. `measured` returns an
/// experiment's figures from runs on this machine.
pub fn beside<'a>(
    machine: &Machine,
    measured: impl Fn(&str) -> Option<&'a [Measured]>,
) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    for experiment in machine.experiments() {
        let measured = measured(experiment).unwrap_or_default();
        let recorded = recorded::figures(&Experiment::load(experiment)?)?;
        let recorded = recorded.unwrap_or_default();
        let here = machine.beside(experiment, measured);
        let there = machine.beside_record(experiment, &recorded, measured);
        let parts = [(false, here), (true, there)].into_iter();
        comparison
            .placed
            .extend(parts.filter_map(|(from_record, part)| {
                Some(ComparedTable {
                    experiment,
                    from_record,
                    part: part?,
                })
            }));
        let all: Vec<Measured> = measured.iter().cloned().chain(recorded).collect();
        let alone = machine.alone(experiment, &all);
        let names: Vec<&str> = alone.iter().map(|item| item.what.as_str()).collect();
        if !names.is_empty() {
            let names = names.join("; ");
            comparison.notes.push(format!(
                "{names}: not measured here, nor in the record of {experiment}"
            ));
        }
    }
    comparison.notes.extend(machine.notes.iter().cloned());
    Ok(comparison)
}

impl Comparison {
    /// Returns the tables for the terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for ComparedTable {
            experiment,
            from_record,
            part,
        } in &self.placed
        {
            let source = match from_record {
                true => format!(" (records/{experiment}.csv, not measured here)"),
                false => String::new(),
            };
            part.tables
                .iter()
                .for_each(|table| text += &format!("{experiment}{source}\n\n{table}\n\n"));
        }
        text + match self.placed.is_empty() {
            false => "In brackets: ratio of the simulated figure to the measured one.\n",
            true => "No experiment measures these figures.\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::import;
    use results::figures::measure;
    use results::outputs;
    use results::runs::for_tests::made_up_runs;
    use results::runs::run::Run;

    /// Returns a run of cyclictest with 60 bins. `overflows` latencies lie beyond the last bin.
    fn run(overflows: u64, max_us: u32) -> Run {
        let mut run = made_up_runs().remove(0);
        run.kind = "cyclictest".into();
        run.provenance.command = "cyclictest -D 5 -q -h 60".into();
        let bins = [(12, 900_u64), (13, 70_000), (40, 29_000), (59, 99)];
        let total: u64 = bins.iter().map(|(_, n)| n).sum();
        let bins: String = bins
            .iter()
            .map(|(us, n)| format!("{us:06} {n:06}\n"))
            .collect();
        run.output = format!(
            "# Histogram\n{bins}# Total: {total:09}\n# Min Latencies: 00012\n# Avg Latencies: 00021\n\
             # Max Latencies: {max_us:05}\n# Histogram Overflows: {overflows:05}\n"
        );
        run
    }

    #[test]
    fn case_13_exports_of_cyclictests_runs_are_read_as_the_runs_are() {
        let dir = std::env::temp_dir().join(format!("warmswitch-exports-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for (overflows, max_us) in [(0, 59), (3, 1300)] {
            let runs = [run(overflows, max_us)];
            let kind = outputs::named("cyclictest").unwrap();
            let (measured, _) = measure::measured(&runs, kind);
            let exports = kind.exports(&runs);
            let forms = exports.iter().filter(|(name, _)| !name.ends_with(".csv"));
            let mut read = 0;
            for (name, text) in forms {
                let file = dir.join(name);
                std::fs::write(&file, text).unwrap();
                let machine = import::file(&file).unwrap();
                for ours in &measured {
                    let is = |item: &&import::machine::Item| item.which.takes(ours);
                    let there = machine.items.iter().find(is).expect(ours.metric).estimate;
                    let ours = [ours.value, ours.low, ours.high];
                    assert_eq!(
                        [there.value, there.low, there.high],
                        ours,
                        "{name}: {there:?}"
                    );
                }
                assert_eq!(machine.items.len(), measured.len());
                read += 1;
            }
            assert_eq!(read, 2, "JSON and text");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn case_14_every_figure_of_a_boot_log_stands_beside_the_record_of_run_memory() {
        let text = include_bytes!("../../../host/src/import/fixtures/dmesg-6.x.txt");
        let machine = import::bytes_of(text).unwrap();
        let beside = beside(&machine, |_| None).unwrap();
        let [placed] = &beside.placed[..] else {
            panic!("one table")
        };
        assert_eq!(
            (placed.experiment, placed.part.tables[0].rows.len()),
            ("memory", 7)
        );
        assert!(beside.notes.is_empty(), "{:?}", beside.notes);
        let text = beside.text();
        assert!(
            text.starts_with("memory (records/memory.csv, not measured here)"),
            "{text}"
        );
    }

    #[test]
    fn case_14_hackbench_and_lmbench_stand_beside_records_and_what_none_has_is_said() {
        let of = |text: &[u8]| beside(&import::bytes_of(text).unwrap(), |_| None).unwrap();
        let hackbench = of(include_bytes!(
            "../../../host/src/import/fixtures/hackbench.txt"
        ));
        assert_eq!(hackbench.placed[0].part.tables[0].rows.len(), 1);
        let lmbench = include_str!("../../../host/src/import/fixtures/lmbench-ctx.txt");
        assert_eq!(
            of(lmbench.as_bytes()).placed[0].part.tables[0].rows.len(),
            8
        );
        let other = of(lmbench.replace("\n8 ", "\n96 ").as_bytes());
        assert_eq!(other.placed[0].part.tables[0].rows.len(), 6);
        let note = "lat_ctx, 96 processes, 0 KB; lat_ctx, 96 processes, 16 KB: not measured here";
        assert!(other.notes[0].starts_with(note), "{:?}", other.notes);
    }
}
