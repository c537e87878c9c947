// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents of `warmswitch host`. A file holds one document, several in a row, or an array of documents.

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::machine::{Item, Machine, timer, which};
use super::{Form, memory};
use results::figures::statistics::Estimate;

/// Documents of `warmswitch host`.
pub const FORM: Form = Form {
    name: "results of warmswitch host (JSON)",
    program: "warmswitch host",
    begins: |text| documents(text).map_or(Vec::new(), |_| vec![1]),
    read: |text, _| read(documents(text).unwrap_or_default(), Vec::new()),
};

/// The keys of a document that the import uses.
#[derive(Deserialize)]
struct Document {
    format: u32,
    tool: String,
    /// Load during the measurement.
    load: Option<String>,
    machine: Value,
    measured: Value,
}

#[derive(Deserialize)]
struct Run {
    what: String,
    command: Vec<String>,
    printed: Value,
    figures: Vec<Figure>,
}

#[derive(Deserialize)]
struct Figure {
    at: String,
    metric: String,
    unit: String,
    #[serde(flatten)]
    estimate: Estimate,
}

/// Returns the documents in a text. Returns `None` when the text is something else.
fn documents(text: &str) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(several)) => all.extend(several),
            Ok(value) => all.push(value),
            Err(_) => return None,
        }
    }
    let ours = |v: &Value| v["tool"].is_string() && v["measured"].is_object();
    (!all.is_empty() && all.iter().all(ours)).then_some(all)
}

/// Reads documents of one machine.
pub fn read(all: Vec<Value>, notes: Vec<String>) -> Result<Machine> {
    let mut machine: Option<Machine> = None;
    for document in all {
        let document: Document = serde_json::from_value(document)?;
        if document.format != 1 {
            bail!(
                "a document has format {}, this program reads format 1",
                document.format
            );
        }
        let machine = machine.get_or_insert_with(|| {
            let mut machine = Machine::new(about(&document));
            let architecture = document.machine["architecture"].as_str();
            machine.is_arm = architecture.is_some_and(|name| name.starts_with("arm"));
            machine
        });
        let about = about(&document);
        if machine.about != about {
            bail!(
                "the documents are of two machines, \"{}\" and \"{about}\": put each machine's into its own file",
                machine.about
            );
        }
        machine.take(&document)?;
    }
    let mut machine = machine.ok_or_else(|| anyhow::anyhow!("there is no document"))?;
    machine.notes.extend(notes);
    Ok(machine)
}

fn about(document: &Document) -> String {
    let text = |key: &str| document.machine[key].as_str().unwrap_or("unknown");
    format!(
        "warmswitch host on {}, Linux {}",
        text("processor"),
        text("kernel")
    )
}

impl Machine {
    fn take(&mut self, document: &Document) -> Result<()> {
        let Some(runs) = document.measured["runs"].as_array() else {
            self.notes
                .push(format!("{}: no experiment measures this", document.tool));
            return Ok(());
        };
        for run in runs {
            let run: Run = serde_json::from_value(run.clone())?;
            let what = match document.load.as_deref() {
                Some(load) => format!("{} under load ({load})", run.what),
                None => run.what.clone(),
            };
            match document.tool.as_str() {
                "memory" => {
                    let figure = |at: &str, metric: &str| {
                        let is = |f: &&Figure| f.at == at && f.metric == metric;
                        run.figures.iter().find(is).map(|f| f.estimate.value)
                    };
                    self.memory.extend(memory(&run.printed, figure));
                }
                tool => self.items.extend(
                    run.figures
                        .iter()
                        .filter_map(|f| item(tool, &run, &what, f)),
                ),
            }
        }
        Ok(())
    }
}

/// Makes the figure of a tool, with the selector of our figures. Returns `None` when no experiment measures the figure.
fn item(tool: &str, run: &Run, what: &str, figure: &Figure) -> Option<Item> {
    let word = |n: usize| run.command.get(n)?.parse::<u32>().ok();
    let metric = figure.metric.as_str();
    let (experiment, which) = match (tool, metric) {
        ("ctx", "switch") => {
            let number = |key: &str| u32::try_from(run.printed[key].as_u64()?).ok();
            let at = [("size_kb", number("size_kb")?), ("tasks", number("tasks")?)];
            (
                "switch-cost",
                which(run.printed["mode"].as_str(), "switch", &at),
            )
        }
        ("fifo", "round trip") => ("ipc", which(Some("lat-vfork"), "lat_fifo", &[])),
        ("fifo", "bandwidth") => ("ipc", which(Some("bw-vfork"), "bw_pipe", &[])),
        ("pipe", "round trip") => ("ipc", which(Some("lat-fork"), "lat_fifo", &[])),
        ("pipe", "bandwidth") => ("ipc", which(Some("bw-fork"), "bw_pipe", &[])),
        ("messaging", "time") => ("hackbench", which(None, "time", &[("groups", word(2)?)])),
        // Word 4 of the command, counted from 0, is the number of requests per second.
        ("reply", _) => (
            "packet_reply",
            which(None, metric, &[("request_hz", word(4)?)]),
        ),
        ("period", _) => ("packet_period", which(None, metric, &[])),
        ("cyclic", _) => return Some(timer(what, metric, figure.estimate)),
        _ => return None,
    };
    Some(Item {
        what: format!("{tool}: {what}, {metric}"),
        unit: figure.unit.clone(),
        estimate: figure.estimate,
        experiment,
        which,
    })
}
