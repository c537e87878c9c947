// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one self-contained HTML file with the curves, and the same charts as SVG files.
//! A pure function of runs and published figures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use askama::Template;

use crate::attribution;
use crate::compare::{Comparison, Row};
use crate::paths;
use crate::plot::{self, Shown};
use crate::published::{Envelope, Published};
use crate::store::{Campaign, Run};
use crate::table;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    experiment: String,
    incomplete: String,
    warnings: Vec<String>,
    headings: Vec<String>,
    boards: Vec<BoardPart>,
    envelope_source: String,
    published: Vec<PublishedRow>,
    provenance: Vec<(String, String)>,
}

struct BoardPart {
    name: String,
    heading: String,
    figures: Vec<String>,
    stacked: String,
    rows: Vec<Vec<String>>,
    envelope: Vec<EnvelopeRow>,
}

struct EnvelopeRow {
    size_kb: u32,
    tasks: u32,
    measured: String,
    envelope: String,
    inside: &'static str,
    sentence: String,
}

struct PublishedRow {
    value: String,
    unit: String,
    what: String,
    board: String,
    source: String,
    note: String,
}

/// What a report is made of.
pub struct Material<'a> {
    pub title: &'a str,
    pub campaign: &'a Campaign,
    pub runs: &'a [Run],
    pub comparison: &'a Comparison,
    pub published: &'a Published,
    pub envelope: &'a Envelope,
}

/// Writes `index.html` and the charts into `dir`; gives the path of the page.
pub fn write(material: &Material, dir: &Path) -> Result<PathBuf> {
    let page = page(material)?;
    for board in &page.boards {
        for (name, svg) in ["processes", "threads", "difference"]
            .iter()
            .zip(&board.figures)
        {
            let file = dir.join(format!("{}-{name}.svg", board.name));
            paths::write_atomically(&file, svg.as_bytes())?;
        }
        let file = dir.join(format!("{}-cycles.svg", board.name));
        paths::write_atomically(&file, board.stacked.as_bytes())?;
    }
    let index = dir.join("index.html");
    paths::write_atomically(&index, page.render()?.as_bytes())?;
    Ok(index)
}

fn page(m: &Material) -> Result<Page> {
    let mut headings: Vec<String> = ["KB", "tasks", "processes us", "threads us", "difference us"]
        .into_iter()
        .chain([
            "95 % interval",
            "cycles",
            "instructions",
            "I lines",
            "D lines",
            "walks",
        ])
        .chain(attribution::headings())
        .map(String::from)
        .collect();
    headings.push("overhead us".into());
    let missing = m.campaign.planned - m.campaign.runs.len().min(m.campaign.planned);
    let incomplete = if missing > 0 {
        format!(
            "{missing} of {} points have not been measured yet.",
            m.campaign.planned
        )
    } else if m.campaign.quick {
        "This is the quick subset of the experiment.".to_string()
    } else {
        String::new()
    };
    Ok(Page {
        title: m.title.to_string(),
        experiment: m.campaign.experiment.clone(),
        incomplete,
        warnings: m.comparison.warnings.clone(),
        headings,
        boards: table::boards(m.comparison)
            .iter()
            .map(|board| board_part(m.comparison, board))
            .collect::<Result<_>>()?,
        envelope_source: m.envelope.source.clone(),
        published: published_rows(m.published),
        provenance: provenance(m.runs),
    })
}

fn board_part(comparison: &Comparison, board: &str) -> Result<BoardPart> {
    let rows: Vec<&Row> = comparison
        .rows
        .iter()
        .filter(|r| r.board == board)
        .collect();
    let top = plot::scale_top_us(&rows);
    let figures = [
        (
            Shown::Processes,
            "processes: every switch changes the address space",
        ),
        (Shown::Threads, "threads of one process: no switch does"),
        (
            Shown::Difference,
            "the difference: changing the address space",
        ),
    ]
    .into_iter()
    .map(|(shown, title)| plot::latency(&rows, shown, &format!("{board}, {title}"), top))
    .collect::<Result<_>>()?;
    let envelope = comparison.envelope.iter().filter(|b| b.board == board);
    Ok(BoardPart {
        name: board.to_string(),
        heading: format!(
            "{board} at {:.0} MHz, kernel {}",
            rows[0].cpu_hz as f64 / 1e6,
            rows[0].kernel
        ),
        figures,
        stacked: plot::stacked(&rows, &format!("{board}: process less thread"))?,
        rows: rows.iter().map(|row| cells(row)).collect(),
        envelope: envelope
            .map(|b| EnvelopeRow {
                size_kb: b.size_kb,
                tasks: b.tasks,
                measured: format!("{:.1}", b.measured_us.value),
                envelope: format!(
                    "{:.0} ({:.0} to {:.0})",
                    b.envelope_us.typical, b.envelope_us.low, b.envelope_us.high
                ),
                inside: if b.inside { "yes" } else { "no" },
                sentence: b.sentence.clone(),
            })
            .collect(),
    })
}

fn cells(row: &Row) -> Vec<String> {
    let d = &row.difference_us;
    let mut cells = vec![
        row.size_kb.to_string(),
        row.tasks.to_string(),
        format!("{:.2}", row.process_us.median),
        format!("{:.2}", row.thread_us.median),
        format!("{:.2}", d.value),
        format!("{:.2} to {:.2}", d.low, d.high),
        format!("{:.0}", row.difference_cycles),
    ];
    match &row.difference {
        Some(t) => {
            let events = [t.instructions, t.icache_fills, t.dcache_fills, t.walks];
            cells.extend(events.iter().chain(&t.cycles).map(|x| format!("{x:.0}")));
        }
        None => cells.extend(std::iter::repeat_n("-".to_string(), 4 + attribution::COUNT)),
    }
    cells.push(format!("{:.2}", row.overhead_us));
    cells
}

fn published_rows(published: &Published) -> Vec<PublishedRow> {
    let figures = table::BESIDE.iter().filter_map(|id| published.figure(id));
    figures
        .map(|f| PublishedRow {
            value: f.value.map_or("plot only".into(), |v| v.to_string()),
            unit: f.unit.clone(),
            what: format!("{} {} {} {}", f.metric, f.stat, f.variant, f.command),
            board: f.board.clone(),
            source: format!("{} ({})", published.title(f), f.place),
            note: f.note.clone(),
        })
        .collect()
}

/// Every distinct input of the runs.
fn provenance(runs: &[Run]) -> Vec<(String, String)> {
    let mut lines = BTreeSet::new();
    for run in runs {
        let p = &run.provenance;
        let kernel = format!("{} ({})", p.kernel_version, short(&p.kernel_hash));
        lines.insert((format!("kernel {}", run.point.kernel), kernel));
        lines.insert((
            format!("board {}", run.point.board),
            short(&p.board_hash).to_string(),
        ));
        lines.insert((
            "root file system".into(),
            short(&p.root_fs_hash).to_string(),
        ));
        lines.insert(("simulator sources".into(), short(&p.simulator).to_string()));
        lines.insert(("warmswitch".into(), p.warmswitch.clone()));
        lines.insert(("kernel command line".into(), p.cmdline.clone()));
    }
    lines.insert(("runs".into(), runs.len().to_string()));
    lines.into_iter().collect()
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, tests::made_up_runs};

    #[test]
    fn the_page_is_self_contained_and_escapes_what_comes_from_outside() {
        let runs = made_up_runs();
        let envelope = Envelope::load().unwrap();
        let mut comparison = compare(&runs, &envelope);
        comparison.warnings.push("<script>".into());
        let material = Material {
            title: "What changing the address space costs",
            campaign: &Campaign {
                planned: 30,
                ..Campaign::default()
            },
            runs: &runs,
            comparison: &comparison,
            published: &Published::load().unwrap(),
            envelope: &envelope,
        };
        let html = page(&material).unwrap().render().unwrap();
        assert!(
            html.matches("<svg").count() == 8,
            "{}",
            html.matches("<svg").count()
        );
        assert!(!html.contains("<script>") && !html.contains("src="));
        assert!(html.contains("30 of 30 points have not been measured"));
        assert!(html.contains("160.64"));
    }
}
