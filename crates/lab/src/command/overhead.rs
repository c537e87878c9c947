// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch overhead`: the paper of 2007 on a board, by its formula and by exact attribution.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::Outcome;
use crate::base::boards;
use crate::explain::overhead::{self, Charges, DOINGS};
use crate::explain::setup;
use crate::figures::published::Published;
use crate::host::read;
use crate::rig::boot::Recipe;
use crate::rig::session::Session;
use crate::runs::markers::{self, Typed};
use crate::sheets::grid::Grid;
use crate::supply::image::{Programs, guest};

const GUEST: &str = "overhead";
/// The paper's pairs.
const PAIRS: [[&str; 2]; 2] = [["sort", "deflate"], ["aes", "crc"]];
/// Turns of each task: 99 switches, as in the paper, 49 interruptions of each.
const TURNS: u32 = 50;
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A pair of tasks, measured.
struct Pair {
    works: [&'static str; 2],
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
        reset_on_panic: true,
        ..Recipe::of(&args.kernel)
    };
    let prepared = recipe.prepare(spec.core.core)?;
    let booted = Session::boot(&spec, 1, &prepared.boot())?;
    let vmlinux = prepared.files.vmlinux.as_deref();
    let run = |works: [&str; 2], turns: u32| -> Result<(Charges, Value)> {
        let (mut session, _) = setup::charge(booted.clone(), vmlinux);
        let (pieces, kb) = (args.pieces * TURNS, args.kb);
        let [first, second] = works;
        let line = format!("{GUEST} -n {pieces} -k {kb} -r 1 {first} {second} 1 {turns}");
        let typed = Typed::own(&line);
        let measured = session.run(&typed, LIMIT_S)?;
        let (said, status) = typed.ended(&measured.console)?;
        markers::check_that_it_ran(status, "")?;
        ensure!(status == 0, "{line} ended with {status}");
        session.name_tasks();
        let said = read::line(GUEST, &String::from_utf8_lossy(&said))?;
        Ok((overhead::charges(session.ledger(), GUEST)?, said))
    };
    let mut pairs = Vec::new();
    for works in PAIRS {
        let (few, _) = run(works, 1)?;
        let (many, said) = run(works, TURNS)?;
        let figures = read::overhead(&said)?;
        let of = |metric: &str| {
            let found = figures.iter().find(|figure| figure.metric == metric);
            let found = found.with_context(|| format!("the guest has no {metric}"))?;
            Ok::<f64, anyhow::Error>(found.estimate.value)
        };
        pairs.push(Pair {
            works,
            formula: [of("hop")?, of("indirect")?],
            exact: many.less(&few),
        });
    }
    let sheet = Sheet {
        cpu_hz: spec.cpu_hz,
        published: Published::load()?,
    };
    if args.json {
        let pairs: Vec<Value> = pairs.iter().map(|pair| sheet.json(pair)).collect();
        let value = json!({"board": args.board, "kernel": args.kernel, "pairs": pairs});
        println!("{value:#}");
    } else {
        pairs.iter().for_each(|pair| print!("{}", sheet.text(pair)));
    }
    Ok(Outcome::Done)
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
    fn rows(&self, pair: &Pair) -> Vec<(String, f64, Option<f64>)> {
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
        for (n, work) in pair.works.into_iter().enumerate() {
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
        rows.push(("exact: all else".into(), self.us(exact.rest, more), None));
        rows.push(("exact: sum".into(), self.us(exact.all(), more), None));
        rows
    }

    fn text(&self, pair: &Pair) -> String {
        let shown = |us: f64| format!("{us:.2}");
        let row = |(name, us, published): (String, f64, Option<f64>)| {
            vec![name, shown(us), published.map(shown).unwrap_or_default()]
        };
        let grid = Grid {
            texts: 1,
            headings: ["a switch, us", "here", "paper of 2007"]
                .map(String::from)
                .into(),
            rows: self.rows(pair).into_iter().map(row).collect(),
        };
        let [first, second] = pair.works;
        format!("{first} and {second}, {} switches\n{grid}\n", 2 * TURNS - 1)
    }

    fn json(&self, pair: &Pair) -> Value {
        let row = |(name, us, published): (String, f64, Option<f64>)| json!({"what": name.trim(), "us": us, "published_us": published});
        let rows: Vec<Value> = self.rows(pair).into_iter().map(row).collect();
        json!({
            "works": pair.works,
            "switches": 2 * TURNS - 1,
            "hop_us": pair.formula[0],
            "indirect_us": pair.formula[1],
            "exact_cycles": pair.exact,
            "rows": rows,
        })
    }
}
