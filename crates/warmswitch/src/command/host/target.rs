// SPDX-License-Identifier: MIT OR Apache-2.0
//! `host build` builds the measuring program for a product, and `host read` reads its results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::Outcome;
use crate::command::compare_with;
use base::paths::shown;
use base::standard_input;
use host::target::{self, Architecture};
use host::{document, import, log, rows};

/// Name of a log on standard input.
const STDIN: &str = "-";

#[derive(clap::Args)]
pub struct Build {
    /// Processor of the product
    #[arg(
        long = "for",
        value_name = "ARCHITECTURE",
        value_enum,
        default_value = "armv5te"
    )]
    architecture: Architecture,
    /// File to write [default: out/host/warmswitch-target-ARCHITECTURE]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Build {
    /// Builds the program and copies it to the output file.
    pub fn execute(&self) -> Result<Outcome> {
        let built = target::built(self.architecture)?;
        let path = self.output.clone();
        let path = path.unwrap_or_else(|| target::default_place(self.architecture));
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::create_dir_all(dir).with_context(|| shown(dir).to_string())?;
        }
        fs::copy(&built, &path).with_context(|| format!("cannot write {}", shown(&path)))?;
        println!("{}", shown(&path));
        Ok(Outcome::Done)
    }
}

#[derive(clap::Args)]
pub struct Read {
    /// Log of the product's console or connection, or a file that `compare --with` takes (- reads standard input)
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Name of the product. Results are kept in out/host/NAME [default: the log's name]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Print the results as JSON, one document per tool
    #[arg(long)]
    json: bool,
}

/// Checks that a product's name can be the name of a folder.
fn name(text: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(is_plain) {
        bail!("use letters, digits, \".\", \"_\" and \"-\", and no \".\" at the start");
    }
    Ok(text.to_string())
}

impl Read {
    /// Prints each tool's table and stores its document.
    pub fn execute(&self) -> Result<Outcome> {
        let stem = self.log.file_stem().unwrap_or_default().to_string_lossy();
        let named = self.name.clone();
        let by_log = name(&stem).ok().filter(|name| name != STDIN);
        let named = named.or(by_log).unwrap_or_else(|| "target".to_string());
        let bytes = if self.log == Path::new(STDIN) {
            standard_input::given()?
                .context("-: standard input is a terminal; pipe the log into this command")?
        } else {
            fs::read(&self.log).with_context(|| format!("cannot read {}", shown(&self.log)))?
        };
        let text = String::from_utf8_lossy(&bytes);
        if !text.contains(log::START) {
            return self.other(&bytes);
        }
        let log = log::read(&text).with_context(|| shown(&self.log).to_string())?;
        let mut outcome = Outcome::Done;
        for (tool, document, rows) in &log.tools {
            if self.json {
                println!("{document}");
            } else {
                println!("{tool}\n\n{}\n", rows::table(rows).to_string().trim_end());
            }
            for line in rows::failed(rows) {
                eprintln!("no figure: {tool}: {line}");
                outcome = Outcome::No;
            }
            for note in rows::notes(rows) {
                eprintln!("note: {tool}: {note}");
            }
            document::keep(Some(&named), tool, document)?;
        }
        if let Some((_, document, _)) = log.tools.first() {
            document::warnings(document)
                .iter()
                .for_each(|line| eprintln!("note: {line}"));
        }
        for note in &log.notes {
            eprintln!("note: {note}");
            outcome = Outcome::No;
        }
        eprintln!("{}", shown(&document::dir(Some(&named))));
        Ok(outcome)
    }

    /// Prints the results of another program next to the boards' records. Stores nothing.
    fn other(&self, bytes: &[u8]) -> Result<Outcome> {
        let mut machine = import::bytes_of(bytes).with_context(|| shown(&self.log).to_string())?;
        machine.name = shown(&self.log).to_string();
        if self.json {
            println!("{}", serde_json::to_string(&machine)?);
            return Ok(Outcome::Done);
        }
        println!(
            "{}: {}\n\n{}\n",
            machine.name,
            machine.about,
            machine.table()
        );
        let beside = compare_with::beside(&machine, |_| None)?;
        println!("{}", beside.text().trim_end());
        let notes = beside.notes.iter();
        notes.for_each(|note| eprintln!("note: {note}"));
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::boards;
    use serde_json::Value;
    use session::boot::Recipe;
    use session::session::Session;

    /// Returns the total length of a guest's timed sections according to its own samples, in nanoseconds.
    fn sum_ns(samples: &Value, times: f64) -> f64 {
        let samples = samples.as_array().expect("samples").iter();
        samples
            .map(|ns| ns.as_f64().expect("a number") * times)
            .sum()
    }

    /// The program reads its clock between the pins' edges. Therefore, the two measurements differ by the time that it
    /// takes to read the clock and to move a pin. They also differ by the clock's resolution.
    #[test]
    #[ignore = "needs the kernel"]
    fn the_products_program_measures_on_the_board_what_the_pins_show() {
        const HOPS: f64 = 100.0 * 2.0;
        const SAMPLES: f64 = 5.0;
        const AROUND_NS: f64 = 20_000.0;
        let program = target::built(Architecture::Armv5te).expect("it is built");
        let size = fs::metadata(&program).expect("it is there").len();
        assert!(size < 1 << 20, "{size}");
        let (board, _) = boards::load("sam9263").expect("the board");
        let mut recipe = Recipe::of("plain");
        recipe.added = vec![
            program
                .to_string_lossy()
                .parse()
                .expect("a file to be added"),
        ];
        let boot = recipe.prepare(&board).expect("it is there").boot();
        let booted = Session::boot(&board, 1, &boot).expect("it boots");
        let ns = 1e9 / board.cpu_hz as f64;
        for form in ["-P", "-T"] {
            let command = format!(
                "warmswitch-target run lat_ctx -g pl061@101e4000 {form} -s 4 -n 100 -r 5 2"
            );
            let measured = booted.clone().run_guest(&command, 20.0).expect("it runs");
            let console = String::from_utf8_lossy(&measured.console).into_owned();
            let printed = host::read::printed("lat_ctx", &console).expect("its line");
            for (pin, key) in ["hop_ns", "overhead_ns"].into_iter().enumerate() {
                let window = &measured.windows[pin];
                assert_eq!(window.sections as f64, SAMPLES, "{form} {key}");
                let by_pin = window.cycles as f64 * ns;
                let excess = (by_pin - sum_ns(&printed[key], HOPS)) / SAMPLES;
                println!("{form} {key}: {by_pin:.0} ns by pin, {excess:.0} ns more per section");
                assert!((0.0..AROUND_NS).contains(&excess), "{form} {key}: {excess}");
            }
        }
    }
}
