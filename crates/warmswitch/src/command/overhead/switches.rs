// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures two tasks that hand the processor to each other.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::sheet::{self, Interrupted, Row, Sheet};
use super::{Args, Bench, GUEST};
use crate::explain::overhead::{Charges, Lost};
use host::read;

/// Names of the two tasks' work.
pub type Works = [&'static str; 2];

/// The paper's pairs of tasks.
pub const PAIRS: [Works; 2] = [["sort", "deflate"], ["aes", "crc"]];
/// Number of turns of each task, as in the paper. They give 99 switches, and 49 interruptions of each task.
pub const TURNS: u32 = 50;
/// Number of values that are sorted without `--sweep`. A value has 4 bytes.
const SORTED: u32 = 512;
/// Numbers of values that are sorted with `--sweep`.
const SWEEP: [u32; 6] = [128, 256, 512, 1024, 2048, 4096];
/// Number of turns of each task with `--sweep`. It is small, because a piece of the largest size takes as long as a
/// thousand pieces of the smallest size.
const SWEEP_TURNS: u32 = 10;

/// Two tasks to measure.
pub struct Plan {
    pub works: Works,
    pub turns: u32,
    /// Number of values to sort.
    sorted: u32,
}

/// Result of two tasks on one board.
pub struct Pair {
    /// The formula's figures, in us. The first is the time of a hop without work. The second is the indirect overhead
    /// of all switches.
    formula: [f64; 2],
    /// Cycles of a run with all turns, minus the cycles of a run with one turn.
    exact: Charges,
}

impl Plan {
    pub fn of(works: Works) -> Plan {
        Plan {
            works,
            turns: TURNS,
            sorted: SORTED,
        }
    }

    /// Returns plans for sort together with CRC, one for each size of the sorted data.
    pub fn sweep() -> Vec<Plan> {
        let plan = |sorted| Plan {
            works: ["sort", "crc"],
            turns: SWEEP_TURNS,
            sorted,
        };
        SWEEP.into_iter().map(plan).collect()
    }

    fn switches(&self) -> u32 {
        2 * self.turns - 1
    }

    /// Returns the number of a task's interruptions in the run with all turns, minus the number in the run with one
    /// turn.
    fn times(&self) -> u32 {
        self.turns - 1
    }

    pub fn measured(&self, args: &Args, bench: &Bench<'_>) -> Result<Pair> {
        let (few, _) = self.run(args, bench, 1)?;
        let (many, printed) = self.run(args, bench, self.turns)?;
        let figures = read::overhead(&printed)?;
        let figure = |metric: &str| {
            let found = figures.iter().find(|figure| figure.metric == metric);
            let found =
                found.with_context(|| format!("guest/overhead printed no figure \"{metric}\""))?;
            Ok::<f64, anyhow::Error>(found.estimate.value)
        };
        Ok(Pair {
            formula: [figure("hop")?, figure("indirect")?],
            exact: many.less(&few),
        })
    }

    fn run(&self, args: &Args, bench: &Bench<'_>, turns: u32) -> Result<(Charges, Value)> {
        let (pieces, kb, sorted) = (args.pieces * self.turns, args.kb, self.sorted);
        let [first, second] = self.works;
        // The number of turns always has two digits. The command line is on the program's stack, so another length
        // would move the program's data.
        let line = format!(
            "{GUEST} -g -n {pieces} -k {kb} -s {sorted} -r 1 {first} {second} 1 {turns:02}"
        );
        bench.run(&line, 2)
    }

    /// Returns the size of the sorted data, in KB.
    fn kb(&self) -> f64 {
        f64::from(4 * self.sorted) / 1024.0
    }

    fn interrupted(&self, task: usize) -> Interrupted<'_> {
        Interrupted {
            work: self.works[task],
            by: "switch",
            times: self.times(),
        }
    }

    fn rows(&self, sheet: &Sheet, pair: &Pair) -> Vec<Row> {
        let switches = 2 * self.times();
        let [hop, indirect] = pair.formula;
        let exact = &pair.exact;
        let direct = sheet.published("direct");
        let us = |cycles: i64| sheet.us(cycles as f64, switches);
        let indirect = indirect / f64::from(self.switches());
        let mut rows = vec![
            ("formula: direct, a hop without work".into(), hop, direct),
            ("formula: indirect".into(), indirect, None),
            (
                "exact: both tasks in the kernel".into(),
                us(exact.kernel),
                direct,
            ),
        ];
        for task in 0..self.works.len() {
            rows.extend(sheet.lost(&self.interrupted(task), exact, task));
        }
        rows.push(("exact: interrupts".into(), us(exact.interrupts), None));
        rows.push(("exact: other tasks".into(), us(exact.rest), None));
        rows.push(("exact: idle".into(), us(exact.idle), None));
        rows.push(("exact: sum".into(), us(exact.all()), None));
        rows
    }

    fn all_rows(&self, sheet: &Sheet, pairs: &[Pair]) -> Vec<Vec<Row>> {
        pairs.iter().map(|pair| self.rows(sheet, pair)).collect()
    }

    fn lost(pairs: &[Pair]) -> [Lost; 2] {
        let exact: Vec<Charges> = pairs.iter().map(|pair| pair.exact).collect();
        [0, 1].map(|task| Lost::of(&exact, task))
    }

    /// Returns two costs of a switch in us. The first is the formula's cost, which is direct plus indirect cost. The
    /// second is the exact cost.
    fn sums(&self, sheet: &Sheet, pairs: &[Pair]) -> [f64; 2] {
        sheet::mean(pairs.iter().map(|pair| {
            let [hop, indirect] = pair.formula;
            let exact = sheet.us(pair.exact.all() as f64, 2 * self.times());
            [hop + indirect / f64::from(self.switches()), exact]
        }))
    }

    pub fn text(&self, sheet: &Sheet, pairs: &[Pair]) -> String {
        let [first, second] = self.works;
        let mut text = format!(
            "{first} and {second}, {} switches, {} seeds\n{}\n",
            self.switches(),
            pairs.len(),
            sheet::table("per switch, us", &self.all_rows(sheet, pairs))
        );
        for (task, lost) in Plan::lost(pairs).iter().enumerate() {
            text += &sheet.claim(&self.interrupted(task), lost);
        }
        text += &sheet::formula_holds("a switch", self.sums(sheet, pairs));
        text + "\n"
    }

    pub fn json(&self, sheet: &Sheet, pairs: &[Pair]) -> Value {
        let lost = Plan::lost(pairs);
        let each = |pair: &Pair| {
            let [hop, indirect] = pair.formula;
            json!({"hop_us": hop, "indirect_us": indirect, "exact_cycles": pair.exact})
        };
        json!({
            "works": self.works,
            "sorted_kb": self.kb(),
            "switches": self.switches(),
            "rows": sheet::rows_json(&self.all_rows(sheet, pairs)),
            "seeds": pairs.iter().map(each).collect::<Vec<_>>(),
            "lost_cycles": lost,
            "verdicts": lost.map(|lost| lost.verdict()),
            "sums_us": self.sums(sheet, pairs),
        })
    }
}

/// Returns a table of the time that sort lost, by the size of the sorted data.
pub fn sweep_text(sheet: &Sheet, measured: &[(Plan, Vec<Pair>)]) -> String {
    let row = |(plan, pair): (&Plan, &Pair)| -> Row {
        let name = format!("{:4} KB", plan.kb());
        (
            name,
            sheet.us(pair.exact.user[0] as f64, plan.times()),
            None,
        )
    };
    let seeds = measured.first().map_or(0, |(_, pairs)| pairs.len());
    let board = |n: usize| {
        measured
            .iter()
            .map(|(plan, pairs)| row((plan, &pairs[n])))
            .collect()
    };
    let each: Vec<Vec<Row>> = (0..seeds).map(board).collect();
    let heading = "sorted data: loss of sort in user land per interruption, us";
    format!("{}\n", sheet::table(heading, &each))
}
