// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures one task with timer interrupts, instead of switches between two tasks.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::sheet::{self, Interrupted, Row, Sheet};
use super::{Args, Bench, GUEST};
use crate::explain::overhead::{Charges, Lost};

/// Names of the kinds of work that the task can do.
pub const WORKS: [&str; 4] = ["sort", "deflate", "aes", "crc"];
/// Kind of work: a loop that uses only registers. The loop has few cache lines, so it has almost no misses after an
/// interrupt. Its slowdown is therefore the direct cost of the interrupts.
const SPIN: &str = "spin";
/// Number of interrupts, as in the paper.
const TIMES: u32 = 49;

/// Result of a task with interrupts on one board.
pub struct Task {
    /// The formula's figures, in us. The first is the direct cost, which is the time that an interrupt takes from the
    /// loop in registers. The second is the additional time that an interrupt takes from this work.
    formula: [f64; 2],
    /// Cycles of a run with interrupts, minus the cycles of a run without interrupts.
    exact: Charges,
}

/// Measures all kinds of work on one board.
pub fn measured(args: &Args, bench: &Bench<'_>) -> Result<Vec<Task>> {
    let (_, direct) = of_work(args, bench, SPIN)?;
    let task = |work| {
        let (exact, all) = of_work(args, bench, work)?;
        let formula = [direct, all - direct];
        Ok(Task { formula, exact })
    };
    WORKS.into_iter().map(task).collect()
}

/// Measures the interrupts of one kind of work. Returns the ledger's charges, and the time per interrupt by the guest's
/// clock, in us.
fn of_work(args: &Args, bench: &Bench<'_>, work: &str) -> Result<(Charges, f64)> {
    let run = |interrupts: u32| -> Result<(Charges, f64)> {
        let (pieces, kb) = (args.pieces * (TIMES + 1), args.kb);
        // The number of interrupts always has two digits. The command line is on the program's stack, so another length
        // would move the program's data.
        let line = format!("{GUEST} -i -g -n {pieces} -k {kb} -r 1 {work} {interrupts:02}");
        let (charges, printed) = bench.run(&line, 1)?;
        let sample = &printed["interrupts"][0];
        ensure!(
            sample["expired"][0] == interrupts,
            "{line}: {} timers expired during the work, not {interrupts}",
            sample["expired"][0]
        );
        let ns = sample["ns"][0].as_f64();
        Ok((charges, ns.context("guest/overhead printed no time")?))
    };
    let ((few, before), (many, with)) = (run(0)?, run(TIMES)?);
    Ok((many.less(&few), (with - before) / 1e3 / f64::from(TIMES)))
}

fn interrupted(work: &str) -> Interrupted<'_> {
    Interrupted {
        work,
        by: "irq",
        times: TIMES,
    }
}

fn rows(sheet: &Sheet, work: &str, task: &Task) -> Vec<Row> {
    let [direct, indirect] = task.formula;
    let us = |cycles: i64| sheet.us(cycles as f64, TIMES);
    let published = sheet.interruption("irq", work, TIMES);
    let exact = &task.exact;
    let mut rows = vec![
        (
            "formula: direct, of a loop in registers".into(),
            direct,
            None,
        ),
        ("formula: indirect".into(), indirect, published),
        ("exact: interrupts".into(), us(exact.interrupts), None),
        (
            "exact: the task in the kernel".into(),
            us(exact.kernel),
            None,
        ),
    ];
    rows.extend(sheet.lost(&interrupted(work), exact, 0));
    rows.push(("exact: other tasks".into(), us(exact.rest), None));
    rows.push(("exact: idle".into(), us(exact.idle), None));
    rows.push(("exact: sum".into(), us(exact.all()), None));
    rows
}

/// Results of one kind of work on all boards.
pub struct Boards<'a> {
    pub work: &'a str,
    pub tasks: Vec<&'a Task>,
}

impl Boards<'_> {
    fn rows(&self, sheet: &Sheet) -> Vec<Vec<Row>> {
        let tasks = self.tasks.iter();
        tasks.map(|task| rows(sheet, self.work, task)).collect()
    }

    fn lost(&self) -> Lost {
        let exact: Vec<Charges> = self.tasks.iter().map(|task| task.exact).collect();
        Lost::of(&exact, 0)
    }

    fn sums(&self, sheet: &Sheet) -> [f64; 2] {
        sheet::mean(self.tasks.iter().map(|task| {
            let [direct, indirect] = task.formula;
            [direct + indirect, sheet.us(task.exact.all() as f64, TIMES)]
        }))
    }

    pub fn text(&self, sheet: &Sheet) -> String {
        format!(
            "{}, {TIMES} timer interrupts, {} seeds\n{}\n{}{}\n",
            self.work,
            self.tasks.len(),
            sheet::table("per interrupt, us", &self.rows(sheet)),
            sheet.claim(&interrupted(self.work), &self.lost()),
            sheet::formula_holds("an interrupt", self.sums(sheet))
        )
    }

    pub fn json(&self, sheet: &Sheet) -> Value {
        let each = |task: &&Task| {
            let [direct, indirect] = task.formula;
            json!({"direct_us": direct, "indirect_us": indirect, "exact_cycles": task.exact})
        };
        json!({
            "work": self.work,
            "interrupts": TIMES,
            "rows": sheet::rows_json(&self.rows(sheet)),
            "seeds": self.tasks.iter().map(each).collect::<Vec<_>>(),
            "lost_cycles": self.lost(),
            "verdict": self.lost().verdict(),
            "sums_us": self.sums(sheet),
        })
    }
}
