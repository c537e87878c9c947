// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch bench`: measures the simulator's speed on fixed guests, and compares it with the speed of QEMU or of
//! another build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use board::spec;
use serde_json::{Value, json};

use crate::Outcome;
use crate::command::examples::Help;
use crate::speed::against::{self, Comparison};
use crate::speed::cores::{self, OnCore};
use crate::speed::qemu::{self, Times};
use crate::speed::{self, AIM, Guest, Ours, WORKS};
use results::figures::statistics::Summary;
use results::render::grid::Grid;
use session::qemu::version;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "CONTRIBUTING.md",
    examples: &[
        ("bench", "the simulator's speed, beside QEMU's if installed"),
        (
            "bench --against ../before",
            "the ratio of this build's CPU time to that of another build",
        ),
    ],
};

/// Measure the simulator's speed on fixed guests, and QEMU's speed if QEMU is installed
#[derive(clap::Args)]
pub struct Args {
    /// Number of repetitions. The fastest repetition counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: u32,
    /// A plugin of QEMU that models caches. May be given several times. Default: QEMU's libcache.so, if it is installed
    #[arg(long, value_name = "FILE", conflicts_with = "no_qemu")]
    cache_plugin: Vec<PathBuf>,
    /// Do not run QEMU
    #[arg(long)]
    no_qemu: bool,
    /// Another build of this program. Runs both builds on one core at the same time, and prints the ratio of their CPU
    /// times
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["repeat", "cache_plugin", "no_qemu"])]
    against: Option<PathBuf>,
    /// Measure on one board per core, without QEMU. All cores have the same kernel and programs
    #[arg(long, conflicts_with_all = ["cache_plugin", "no_qemu", "against"])]
    cores: bool,
    /// Number of pairs of runs, with --against
    #[arg(long, value_name = "N", default_value_t = 11, requires = "against")]
    pairs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Results of the measurement.
struct Results {
    ours: Vec<Ours>,
    qemu: Option<Times>,
    /// Name of each plugin's file, and the times with it.
    plugins: Vec<(String, Times)>,
    qemu_version: Option<String>,
    /// Table cell that replaces a speed that was not measured.
    missing: &'static str,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    if args.repeat == 0 {
        bail!("--repeat 0: use 1 or more");
    }
    if let Some(other) = &args.against {
        return against(other, args);
    }
    if args.cores {
        return on_cores(args);
    }
    let plugins = qemu::find_plugins(&args.cache_plugin)?;
    let guest = Guest::new()?;
    let ours = speed::ours(&guest, args.repeat)?;
    let qemu_version = if args.no_qemu { None } else { version() };
    let run = |plugin| qemu::times(&guest, plugin, args.repeat);
    let qemu = qemu_version.is_some().then(|| run(None)).transpose()?;
    let plugins = plugins
        .iter()
        .filter(|_| qemu.is_some())
        .map(|plugin| Ok((qemu::name_of(plugin), run(Some(plugin))?)))
        .collect::<Result<_>>()?;
    let missing = if args.no_qemu {
        "not run"
    } else {
        "not installed"
    };
    let results = Results {
        ours,
        qemu,
        plugins,
        qemu_version,
        missing,
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document(&results))?);
    } else {
        print!("{}", render(&results));
    }
    Ok(Outcome::Done)
}

fn on_cores(args: &Args) -> Result<Outcome> {
    let cores = cores::on_cores(args.repeat)?;
    if args.json {
        let rows = cores.iter().flat_map(|core| {
            let works = WORKS.iter().zip(&core.ours);
            works.map(|(work, ours)| {
                json!({"board": core.board, "core": core.core, "work": work.name, "ours": ours,
                       "mips": ours.mips(), "busy_board_s_per_cpu_s": ours.speed()})
            })
        });
        let rows: Vec<Value> = rows.collect();
        let document = json!({
            "format": 1,
            "units": {"mips": "million guest instructions per second of host CPU time",
                      "*_s": "seconds"},
            "rows": rows,
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print!("{}", render_cores(&cores));
    }
    Ok(Outcome::Done)
}

fn render_cores(cores: &[OnCore]) -> String {
    let mut table = Grid::new(
        2,
        ["core", "work", "M instr", "M instr/s", "board s / host s"],
    );
    for core in cores {
        for (work, ours) in WORKS.iter().zip(&core.ours) {
            table.add_row([
                format!("{} ({})", core.core, core.board),
                work.name.to_string(),
                format!("{:.1}", ours.instructions as f64 / 1e6),
                format!("{:.0}", ours.mips()),
                format!("{:.2}", ours.speed()),
            ]);
        }
    }
    format!(
        "Simulator speed by core, per second of host CPU time, best repetition. Each core runs kernel plain-multi \
         and programs for ARMv4T.\n{table}\n"
    )
}

fn against(other: &Path, args: &Args) -> Result<Outcome> {
    if args.pairs == 0 {
        bail!("--pairs 0: use 1 or more");
    }
    let rows = against::compare(other, args.pairs)?;
    if args.json {
        let document = json!({
            "format": 1,
            "board": spec::DEFAULT_BOARD,
            "units": {"ratio": "host CPU time per guest instruction, this build to the other one"},
            "rows": rows,
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print!("{}", render_against(&rows));
    }
    Ok(Outcome::Done)
}

fn render_against(rows: &[Comparison]) -> String {
    let mut table = Grid::new(1, ["work", "M instr", "ratio", "interval"]);
    for row in rows {
        let [ours, theirs] = row.instructions.map(|n| format!("{:.1}", n as f64 / 1e6));
        table.add_row([
            row.work.to_string(),
            if ours == theirs {
                ours
            } else {
                format!("{ours}, {theirs}")
            },
            format!("{:.3}", row.ratio.median),
            format!("{:.3} to {:.3}", row.ratio.low, row.ratio.high),
        ]);
    }
    let Some(Summary {
        count, coverage, ..
    }) = rows.first().map(|row| row.ratio)
    else {
        return String::new();
    };
    format!(
        "Ratio of host CPU time per guest instruction on {}, this build to the other: below 1, this build\n\
         is faster. Median of {count} pairs of runs that shared a core, with its {:.0} % interval.\n{table}\n",
        spec::DEFAULT_BOARD,
        coverage * 100.0
    )
}

fn mips(ours: &Ours, cpu_s: f64) -> f64 {
    ours.instructions as f64 / cpu_s / 1e6
}

fn document(results: &Results) -> Value {
    let rows: Vec<Value> = WORKS
        .iter()
        .zip(&results.ours)
        .enumerate()
        .map(|(n, (work, ours))| {
            let other = |times: &Times| {
                let mips = mips(ours, times[n]);
                json!({"cpu_s": times[n], "mips": mips, "ratio": ours.mips() / mips})
            };
            let plugins: BTreeMap<_, _> = results
                .plugins
                .iter()
                .map(|(name, times)| (name, other(times)))
                .collect();
            json!({
                "work": work.name,
                "ours": ours,
                "mips": ours.mips(),
                "busy_board_s_per_cpu_s": ours.speed(),
                "qemu": results.qemu.as_ref().map(other),
                "qemu_cache_plugins": plugins,
                "aim_mips": AIM * work.stock_plugin_mips,
            })
        })
        .collect();
    json!({
        "format": 1,
        "board": spec::DEFAULT_BOARD,
        "qemu_version": results.qemu_version,
        "units": {"mips": "million guest instructions per second of host CPU time",
                  "instructions": "counted by the simulator; QEMU's mips use the same number",
                  "*_s": "seconds"},
        "rows": rows,
    })
}

fn render(results: &Results) -> String {
    let mut heads: Vec<String> = [
        "work",
        "M instr",
        "M instr/s",
        "board s / host s",
        "QEMU\nM instr/s",
    ]
    .map(String::from)
    .into();
    for (name, _) in &results.plugins {
        heads.push(format!("QEMU with {name}\nM instr/s"));
        heads.push(format!("ours / {name}"));
    }
    heads.push("aim\nM instr/s".into());
    let mut table = Grid::new(1, heads);
    for (n, (work, ours)) in WORKS.iter().zip(&results.ours).enumerate() {
        let qemu = results.qemu.as_ref().map(|times| mips(ours, times[n]));
        let mut row = vec![
            work.name.to_string(),
            format!("{:.1}", ours.instructions as f64 / 1e6),
            format!("{:.0}", ours.mips()),
            format!("{:.2}", ours.speed()),
            qemu.map_or(results.missing.into(), |speed| format!("{speed:.0}")),
        ];
        for (_, times) in &results.plugins {
            let plugin = mips(ours, times[n]);
            row.push(format!("{plugin:.0}"));
            row.push(format!("{:.1}", ours.mips() / plugin));
        }
        row.push(format!("{:.0}", AIM * work.stock_plugin_mips));
        table.add_row(row);
    }
    let qemu = results
        .qemu_version
        .as_deref()
        .unwrap_or("QEMU was not run");
    format!(
        "Simulator speed on {}, per second of host CPU time, best repetition; {qemu}.\n{table}\n\
         M instr: guest instructions, counted by the simulator. QEMU's speeds use the same number\n\
         for the same work. Board time excludes waits for interrupts. The aim is {AIM:.0} times the speed\n\
         of QEMU's stock cache plugin, which was measured on one machine with two cores: on other\n\
         machines, compare ratios, not speeds.\n",
        spec::DEFAULT_BOARD
    )
}
