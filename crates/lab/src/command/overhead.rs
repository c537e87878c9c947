// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch overhead`: the paper of 2007 on a board, by its formula and by exact attribution.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::Outcome;
use crate::base::boards;
use crate::explain::overhead::{self, Charges, DOINGS, Lost, Verdict};
use crate::explain::setup;
use crate::figures::published::Published;
use crate::host::read;
use crate::rig::boot::Recipe;
use crate::rig::session::Session;
use crate::runs::markers::{self, Typed};
use crate::sheets::grid::{self, Grid};
use crate::supply::image::{Programs, guest};

const GUEST: &str = "overhead";
/// What the two tasks do.
type Works = [&'static str; 2];

/// The paper's pairs.
const PAIRS: [Works; 2] = [["sort", "deflate"], ["aes", "crc"]];
/// Turns of each task: 99 switches, as in the paper, 49 interruptions of each.
const TURNS: u32 = 50;
/// For the kernel: two runs of a program are to have their data at the same addresses.
const SAME_PLACES: &str = "norandmaps";
/// Board seconds that a run may take.
const LIMIT_S: f64 = 300.0;

/// What switches cost two tasks that work: the pairs of the paper of 2007, by its formula and exactly
#[derive(clap::Args)]
pub struct Args {
    /// Name of a board, or a path to a board file
    #[arg(long, value_name = "BOARD", default_value = "omap1610")]
    board: String,
    /// Name of a kernel
    #[arg(long, value_name = "KERNEL", default_value = "plain")]
    kernel: String,
    /// Pieces of work in a turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pieces: u32,
    /// Data that each task works on
    #[arg(long, value_name = "KB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    kb: u32,
    /// Boards that differ in the seed of the caches' random choice of victims: figures are means over these
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A pair of tasks, measured on one board.
struct Pair {
    /// By the formula, us: a hop without work, and the indirect overhead of all switches.
    formula: [f64; 2],
    /// What 98 switches more cost, cycles.
    exact: Charges,
}

/// Measures and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    let spec = boards::load(&args.board)?.0;
    ensure!(
        Programs::of(spec.core.core) == Programs::Armv5te,
        "--board {}: guest/overhead is not compiled for its core",
        args.board
    );
    let program = guest::alone(GUEST)?.display().to_string();
    let added = program.parse().map_err(anyhow::Error::msg)?;
    let recipe = Recipe {
        added: vec![added],
        append: SAME_PLACES.to_string(),
        reset_on_panic: true,
        ..Recipe::of(&args.kernel)
    };
    let prepared = recipe.prepare(spec.core.core)?;
    let mut measured: Vec<Vec<Pair>> = PAIRS.iter().map(|_| Vec::new()).collect();
    for seed in 1..=u64::from(args.seeds) {
        let booted = Session::boot(&spec, seed, &prepared.boot())?;
        for (pairs, works) in measured.iter_mut().zip(PAIRS) {
            pairs.push(args.measured(&booted, prepared.files.vmlinux.as_deref(), works)?);
        }
    }
    let sheet = Sheet {
        cpu_hz: spec.cpu_hz,
        published: Published::load()?,
    };
    let all = PAIRS.iter().zip(&measured);
    if args.json {
        let pairs: Vec<Value> = all.map(|(works, pairs)| sheet.json(works, pairs)).collect();
        let value = json!({"board": args.board, "kernel": args.kernel, "seeds": args.seeds, "pairs": pairs});
        println!("{value:#}");
    } else {
        all.for_each(|(works, pairs)| print!("{}", sheet.text(works, pairs)));
    }
    Ok(Outcome::Done)
}

impl Args {
    fn measured(&self, booted: &Session, vmlinux: Option<&Path>, works: Works) -> Result<Pair> {
        let (few, _) = self.run(booted, vmlinux, (works, 1))?;
        let (many, said) = self.run(booted, vmlinux, (works, TURNS))?;
        let figures = read::overhead(&said)?;
        let of = |metric: &str| {
            let found = figures.iter().find(|figure| figure.metric == metric);
            let found = found.with_context(|| format!("the guest has no {metric}"))?;
            Ok::<f64, anyhow::Error>(found.estimate.value)
        };
        Ok(Pair {
            formula: [of("hop")?, of("indirect")?],
            exact: many.less(&few),
        })
    }

    /// All charges, and the guest's line.
    fn run(
        &self,
        booted: &Session,
        vmlinux: Option<&Path>,
        (works, turns): (Works, u32),
    ) -> Result<(Charges, Value)> {
        let (mut session, _) = setup::charge(booted.clone(), vmlinux);
        let (pieces, kb) = (self.pieces * TURNS, self.kb);
        let [first, second] = works;
        let line = format!("{GUEST} -n {pieces} -k {kb} -r 1 {first} {second} 1 {turns:02}");
        // As long whatever the turns are, as it stands on the program's stack.
        let typed = Typed::own(&line);
        let measured = session.run(&typed, LIMIT_S)?;
        let (said, status) = typed.ended(&measured.console)?;
        markers::check_that_it_ran(status, "")?;
        ensure!(status == 0, "{line} ended with {status}");
        session.name_tasks();
        let said = read::line(GUEST, &String::from_utf8_lossy(&said))?;
        Ok((overhead::charges(session.ledger(), GUEST)?, said))
    }
}

/// What figures are shown by.
struct Sheet {
    cpu_hz: u64,
    published: Published,
}

impl Sheet {
    /// A figure of the paper, of so many.
    fn published(&self, id: &str, of: f64) -> Option<f64> {
        let figure = self.published.figure(&format!("david2007.{id}"))?;
        Some(figure.value? / of)
    }

    fn us(&self, cycles: i64, of: u32) -> f64 {
        1e6 * cycles as f64 / self.cpu_hz as f64 / f64::from(of)
    }

    /// Name, microseconds, the paper's.
    fn rows(&self, works: &Works, pair: &Pair) -> Vec<(String, f64, Option<f64>)> {
        let (more, each) = (2 * (TURNS - 1), TURNS - 1);
        let [hop, indirect] = pair.formula;
        let switches = f64::from(2 * TURNS - 1);
        let exact = &pair.exact;
        let direct = self.published("direct", 1.0);
        let mut rows = vec![
            (
                "formula: direct, a hop without work".to_string(),
                hop,
                direct,
            ),
            ("formula: indirect".into(), indirect / switches, None),
            (
                "exact: both tasks in the kernel".into(),
                self.us(exact.kernel, more),
                direct,
            ),
        ];
        for (n, work) in works.iter().enumerate() {
            let published = self.published(&format!("indirect49.switch.{work}"), f64::from(each));
            let name = format!("exact: {work} in user land, an interruption");
            rows.push((name, self.us(exact.user[n], each), published));
            for (doing, missed) in DOINGS.into_iter().zip(exact.missed[n]) {
                let name = format!("  missed, {doing}");
                rows.push((name, self.us(missed, each), None));
            }
        }
        rows.push((
            "exact: interrupts".into(),
            self.us(exact.interrupts, more),
            None,
        ));
        rows.push(("exact: other tasks".into(), self.us(exact.rest, more), None));
        rows.push(("exact: sum".into(), self.us(exact.busy(), more), None));
        rows
    }

    /// The same over all boards: mean, least, most, the paper's.
    fn over_seeds(&self, works: &Works, pairs: &[Pair]) -> Vec<(String, [f64; 3], Option<f64>)> {
        let each: Vec<_> = pairs.iter().map(|pair| self.rows(works, pair)).collect();
        let row = |n: usize| {
            let values: Vec<f64> = each.iter().map(|rows| rows[n].1).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (name, _, published) = each[0][n].clone();
            (name, [mean, least, most], published)
        };
        (0..each[0].len()).map(row).collect()
    }

    fn text(&self, works: &Works, pairs: &[Pair]) -> String {
        let shown = |us: f64| format!("{us:.2}");
        let rows = self.over_seeds(works, pairs).into_iter();
        let rows = rows.map(|(name, [mean, least, most], published)| {
            let published = published.map(shown).unwrap_or_default();
            vec![name, shown(mean), shown(least), shown(most), published]
        });
        let headings = ["a switch, us", "mean", "least", "most", "paper of 2007"];
        let grid = Grid {
            texts: 1,
            headings: headings.map(String::from).into(),
            rows: rows.collect(),
        };
        let [first, second] = works;
        let switches = 2 * TURNS - 1;
        format!(
            "{first} and {second}, {switches} switches, {} seeds\n{grid}\n{}\n",
            pairs.len(),
            self.claims(works, pairs)
        )
    }

    /// Of each task: does what it lost by whose doing come to what it lost by differencing two runs?
    fn lost(&self, pairs: &[Pair]) -> [Lost; 2] {
        let exact: Vec<Charges> = pairs.iter().map(|pair| pair.exact).collect();
        [0, 1].map(|task| Lost::of(&exact, task))
    }

    /// The formula's direct and indirect cost of a switch, and the exact sum, us.
    fn sums(&self, pairs: &[Pair]) -> [f64; 2] {
        let switches = f64::from(2 * TURNS - 1);
        let each = pairs.iter().map(|pair| {
            let [hop, indirect] = pair.formula;
            let exact = self.us(pair.exact.busy(), 2 * (TURNS - 1));
            [hop + indirect / switches, exact]
        });
        let sum = each.fold([0.0; 2], |sum, pair| [0, 1].map(|n| sum[n] + pair[n]));
        sum.map(|us| us / pairs.len() as f64)
    }

    fn claims(&self, works: &Works, pairs: &[Pair]) -> String {
        let mut text = String::new();
        for (work, lost) in works.iter().zip(self.lost(pairs)) {
            let us = |cycles: f64| 1e6 * cycles / self.cpu_hz as f64 / f64::from(TURNS - 1);
            let said = match lost.verdict() {
                Verdict::Agree => "HOLDS, agree within 5 %",
                Verdict::Explained => "HOLDS, the difference has names",
                Verdict::Fails => "FAILS",
            };
            text += &grid::wrapped(&format!(
                "{said}: {work} lost {:.2} us an interruption by differencing, {:.2} us by the doing of others; \
                 its own replacements {:+.2}, instructions to hand over {:+.2}, without a name {:+.2}",
                us(lost.difference),
                us(lost.by_others),
                us(lost.by_itself),
                us(lost.issued),
                us(lost.unnamed())
            ));
        }
        let [formula, exact] = self.sums(pairs);
        let said = match overhead::agree(formula, exact) {
            true => "HOLDS",
            false => "FAILS",
        };
        text + &grid::wrapped(&format!(
            "{said}: the formula's direct and indirect cost of a switch, {formula:.2} us, are the exact sum, \
             {exact:.2} us, within 5 %"
        ))
    }

    fn json(&self, works: &Works, pairs: &[Pair]) -> Value {
        let row = |(name, [mean, least, most], published): (String, [f64; 3], Option<f64>)| json!({"what": name.trim(), "us": mean, "least_us": least, "most_us": most, "published_us": published});
        let rows = self.over_seeds(works, pairs).into_iter().map(row);
        let lost = self.lost(pairs);
        let each = |pair: &Pair| json!({"hop_us": pair.formula[0], "indirect_us": pair.formula[1], "exact_cycles": pair.exact});
        json!({
            "works": works,
            "switches": 2 * TURNS - 1,
            "rows": rows.collect::<Vec<_>>(),
            "seeds": pairs.iter().map(each).collect::<Vec<_>>(),
            "lost_cycles": lost,
            "verdicts": lost.map(|lost| lost.verdict()),
            "sums_us": self.sums(pairs),
        })
    }
}
