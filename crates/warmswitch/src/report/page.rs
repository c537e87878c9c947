// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one self-contained HTML page. Files with its figures are in the same folder. The report depends only on
//! experiments, runs and published figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use askama::Template;

use crate::report::assumptions;
use crate::report::cores::Cores;
use crate::report::export;
use crate::report::material::{Material, Results};
use crate::report::plot_headlines;
use crate::report::table;
use base::paths;
use results::figures::claim::{self, Pair, Verdict};
use results::figures::figure::figure;
use results::figures::headline::{self, Line};
use results::figures::published::Published;
use results::figures::versus;
use results::render::boards;
use results::render::grid::Grid;
use results::render::part::Part;
use results::runs::campaign::Failed;
use results::runs::run::Run;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    /// Sentence with the first headline. Empty without headlines.
    sentence: String,
    /// Sentence that compares the paper's effect with our effect. Empty without a paper.
    of_paper: String,
    /// Boards and kernels of the runs. Empty without runs.
    measured_on: String,
    /// Numbers of claims that hold, fail and are open. Empty without claims.
    verdict: String,
    /// Short forms of the claims that fail or are open.
    undecided: Vec<Claim>,
    /// Names of the experiments that were measured in their quick form.
    quick: String,
    /// SVG text of the headline chart. Empty without headlines.
    headline_chart: String,
    headlines: Grid,
    /// Parts for the user's machine, followed by the parts for each core. Empty in the report of one experiment.
    cores: Vec<Part>,
    sections: Vec<Section>,
    assumptions: Vec<Part>,
    provenance: Vec<(String, String)>,
}

/// Section of one experiment.
struct Section {
    name: String,
    title: String,
    /// Command that reproduces the section.
    command: String,
    /// Numbers of the section's claims that hold, fail and are open. Empty without claims.
    verdict: String,
    incomplete: String,
    failed: Vec<String>,
    not_applicable: Vec<String>,
    warnings: Vec<String>,
    claims: Vec<Claim>,
    parts: Vec<Part>,
    /// Names of the files with the figures. The files are in the page's folder.
    files: Vec<String>,
}

struct Claim {
    word: &'static str,
    text: String,
    source: String,
    reason: String,
}

/// Writes `index.html`, the charts and the exports into `dir`, and returns the path of the page. The parts of `first`
/// come before the parts of `cores`.
pub fn write(
    materials: &[Material],
    first: &[Part],
    cores: &[Cores],
    dir: &Path,
) -> Result<PathBuf> {
    let mut page = page(materials, cores)?;
    page.cores.splice(0..0, first.iter().cloned());
    let parts = page.sections.iter().flat_map(|section| &section.parts);
    let parts = parts.chain(&page.cores);
    for chart in parts.flat_map(|part| &part.charts) {
        let file = dir.join(format!("{}.svg", chart.name));
        paths::write_atomically(&file, chart.svg.as_bytes())?;
    }
    for material in materials {
        for (name, text) in export::files(material) {
            paths::write_atomically(&dir.join(name), text.as_bytes())?;
        }
    }
    if !page.headline_chart.is_empty() {
        let file = dir.join("headlines.svg");
        paths::write_atomically(&file, page.headline_chart.as_bytes())?;
    }
    let index = dir.join("index.html");
    paths::write_atomically(&index, page.render()?.as_bytes())?;
    Ok(index)
}

fn page(materials: &[Material], cores: &[Cores]) -> Result<Page> {
    // The headlines of `cores` have separate parts, so the headline table omits them.
    let in_cores = |m: &&Material| cores.iter().any(|c| c.name() == m.experiment.name);
    let others = materials.iter().filter(|m| !in_cores(m));
    let lines: Vec<&Line> = others.flat_map(|m| &m.results.headlines).collect();
    let with_cores = lines.iter().copied();
    let with_cores: Vec<&Line> = with_cores
        .chain(cores.iter().flat_map(Cores::lines))
        .collect();
    let boards = headline::boards(&with_cores);
    let verdicts = materials.iter().flat_map(|m| &m.results.verdicts);
    let quick = materials.iter().filter(|m| m.campaign.asked.quick);
    let quick = quick.map(|m| m.experiment.name.as_str());
    let runs = || materials.iter().flat_map(|m| m.runs);
    let mut assumptions = assumptions::parts(runs());
    assumptions.push(commands(runs()));
    let mut core_parts = Vec::new();
    for one in cores {
        let beside = (!one.beside.is_empty()).then(|| beside_grid(&one.beside));
        core_parts.push(one.part(beside)?);
    }
    Ok(Page {
        verdict: verdict(verdicts.clone()),
        quick: quick.collect::<Vec<_>>().join(", "),
        headline_chart: match lines.as_slice() {
            [] => String::new(),
            lines => plot_headlines::bars(lines)?,
        },
        headlines: table::headlines(&lines),
        sentence: headline::sentence(&lines).unwrap_or_default(),
        of_paper: headline::of_paper(&with_cores).unwrap_or_default(),
        undecided: verdicts.clone().filter_map(undecided).collect(),
        measured_on: assumptions::measured_on(runs(), &boards),
        cores: core_parts,
        title: match materials {
            [one] => one.experiment.title.clone(),
            _ => "Context switches on cores with virtually tagged caches".to_string(),
        },
        sections: materials.iter().map(section).collect::<Result<_>>()?,
        assumptions,
        provenance: provenance(runs()),
    })
}

/// Counts verdicts in words: "4 claims hold, 1 is open".
fn verdict<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let words: Vec<&str> = verdicts.map(Verdict::word).collect();
    let count = |word: &str, one: &str, more: &str| {
        let n = words.iter().filter(|w| **w == word).count();
        (n > 0).then(|| format!("{n} {}", if n == 1 { one } else { more }))
    };
    let counts = [
        count("holds", "claim holds", "claims hold"),
        count("FAILS", "FAILS", "FAIL"),
        count("open", "is open", "are open"),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns a claim that fails or is open, with a short reason for the top of the page.
fn undecided(v: &Verdict) -> Option<Claim> {
    let reason = match (&v.worst, &v.recorded) {
        (Some(w), _) => {
            let why = match (v.holds, &v.explained) {
                (None, _) => "the figures do not decide it",
                (_, Some(_)) => "explained below",
                _ => "not explained yet",
            };
            let [value, low, high] = [w.value, w.low, w.high].map(|x| format!("{x:.2}"));
            let what = v.quantity.to_lowercase();
            format!(
                "{what} {value} ({low} to {high}) on {}, {}; {why}",
                w.place, v.bound
            )
        }
        (None, Some(recorded)) => {
            let value = recorded.worst.as_ref().map_or(f64::NAN, |w| w.value);
            let what = format!(
                "{} {value:.2}, {}",
                recorded.quantity.to_lowercase(),
                recorded.bound
            );
            format!(
                "not measured in the quick form; record of the full form: {}: {what}",
                recorded.word()
            )
        }
        (None, None) => "not measured here".to_string(),
    };
    (v.holds != Some(true)).then(|| Claim {
        word: v.word(),
        text: v.text.clone(),
        source: v.source.clone(),
        reason,
    })
}

/// Returns the parts of an experiment below its claims.
pub fn parts(m: &Material) -> Result<Vec<Part>> {
    let mut parts = m.kind.parts(&m.told())?;
    parts.extend(beside_part(&m.results.beside, &m.papers.published));
    parts.extend(versus_part(&m.results));
    parts.extend(boards_part(&m.results));
    parts.extend(m.more.iter().cloned());
    Ok(parts)
}

fn section(m: &Material) -> Result<Section> {
    let results = &m.results;
    let missing = m.campaign.planned - m.campaign.runs.len().min(m.campaign.planned);
    let incomplete = if missing > 0 {
        format!(
            "{missing} of {} points have not been measured yet.",
            m.campaign.planned
        )
    } else if m.campaign.asked.quick {
        "Quick form: a subset of the experiment's points.".to_string()
    } else {
        String::new()
    };
    let claims = results.verdicts.iter().map(|v| Claim {
        word: v.word(),
        text: v.text.clone(),
        source: v.source.clone(),
        reason: v.reason(),
    });
    Ok(Section {
        name: m.experiment.name.clone(),
        title: m.experiment.title.clone(),
        command: m.command(),
        verdict: verdict(results.verdicts.iter()),
        incomplete,
        claims: claims.collect(),
        parts: parts(m)?,
        failed: m.campaign.failed.iter().map(failed).collect(),
        warnings: results.warnings.clone(),
        not_applicable: m
            .experiment
            .not_applicable
            .iter()
            .map(ToString::to_string)
            .collect(),
        files: export::files(m).into_iter().map(|(name, _)| name).collect(),
    })
}

fn failed(f: &Failed) -> String {
    format!(
        "{}: {} (console: {})",
        f.point.label(),
        f.reason,
        f.console.display()
    )
}

/// Returns a table of published and measured figures.
fn beside_part(beside: &[Pair], published: &Published) -> Option<Part> {
    (!beside.is_empty()).then(|| Part {
        heading: "Comparison with the papers".into(),
        text: format!(
            "Published figures are from other boards and kernels. They validate the simulator; \
             no parameter was fitted to them. From: {}.",
            claim::papers(beside, published).join("; ")
        ),
        tables: vec![beside_grid(beside)],
        ..Part::default()
    })
}

fn beside_grid(beside: &[Pair]) -> Grid {
    let headings = [
        "figure",
        "paper",
        "paper's board",
        "here",
        "board here",
        "here / paper",
        "place in paper",
        "note",
    ];
    let rows = beside.iter().map(|pair| {
        let f = pair.figure;
        vec![
            f.what(),
            f.shown(),
            f.board.clone(),
            pair.each(|m| Some(format!("{} {}", figure(m), m.unit))),
            pair.each(|m| Some(m.place.board.clone())),
            pair.each(|m| Some(format!("{:.2}", m.value / f.value?))),
            f.place.clone(),
            f.note.clone(),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    let mut headings = headings.map(String::from).to_vec();
    if beside.iter().all(|p| p.figure.note.is_empty()) {
        headings.pop();
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    Grid {
        texts: headings.len(),
        headings,
        rows,
    }
}

/// Returns a table that compares each kernel with the first kernel, over all seeds.
fn versus_part(results: &Results) -> Option<Part> {
    let text = versus::caption(&results.versus)?;
    Some(Part {
        heading: "Comparison of kernels".into(),
        text,
        tables: vec![table::versus(&results.versus)],
        ..Part::default()
    })
}

/// Returns tables of figures that were measured on several boards.
fn boards_part(results: &Results) -> Option<Part> {
    let tables = boards::side_by_side(&results.measured);
    (!tables.is_empty()).then(|| Part {
        heading: "Comparison of boards".into(),
        text: boards::CAPTION.into(),
        tables,
        ..Part::default()
    })
}

/// Returns a table of the commands that were typed on the boards' consoles.
fn commands<'a>(runs: impl Iterator<Item = &'a Run>) -> Part {
    let all: BTreeSet<(&str, &str)> = runs
        .map(|run| (&*run.experiment, &*run.provenance.command))
        .collect();
    let rows = all.iter().map(|(e, c)| vec![e.to_string(), c.to_string()]);
    Part {
        heading: format!("{} commands, as typed on the consoles", all.len()),
        tables: vec![Grid {
            texts: 2,
            headings: vec!["experiment".into(), "command".into()],
            rows: rows.collect(),
        }],
        folded: true,
        ..Part::default()
    }
}

/// Returns names and values of all inputs of the runs, without duplicates.
fn provenance<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<(String, String)> {
    let mut lines = BTreeSet::new();
    let mut seeds = BTreeMap::new();
    let mut count = 0;
    for run in runs {
        count += 1;
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
        let seeds: &mut BTreeSet<u64> = seeds.entry(&run.experiment).or_default();
        seeds.insert(run.point.seed);
    }
    for (experiment, seeds) in seeds {
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        lines.insert((format!("seeds of {experiment}"), seeds.join(", ")));
    }
    lines.insert(("runs".into(), count.to_string()));
    lines.into_iter().collect()
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::experiment::Experiment;
    use results::figures::published::Papers;
    use results::runs::campaign::Campaign;
    use results::runs::for_tests::made_up_runs;

    /// Renders the page, and the contents of the CSV files.
    fn rendered(runs: &[Run], planned: usize) -> (String, Vec<String>) {
        let experiment = Experiment {
            title: "<script>".into(),
            ..Experiment::load("switch-cost").unwrap()
        };
        let campaign = Campaign {
            planned,
            ..Campaign::default()
        };
        let papers = Papers::load().unwrap();
        let material = Material::of(&experiment, &campaign, runs, &papers).unwrap();
        let files = export::files(&material).into_iter();
        let files = files.map(|(_, text)| text).collect();
        (page(&[material], &[]).unwrap().render().unwrap(), files)
    }

    #[test]
    fn the_page_is_self_contained_and_escapes_what_comes_from_outside() {
        let (html, _) = rendered(&made_up_runs(), 30);
        assert_eq!(
            html.matches("<svg").count(),
            15,
            "headlines; per board: 2 sizes, where the time goes, 4 of its kernel"
        );
        assert!(!html.contains("<script>") && !html.contains("src="));
        assert!(html.contains("30 of 30 points have not been measured"));
        assert!(html.contains("160.64"));
        assert!(html.contains("open"));
    }

    #[test]
    fn latencies_get_a_histogram_and_its_numbers_as_csv() {
        let mut runs = made_up_runs();
        runs.truncate(1);
        runs[0].kind = "cyclictest".into();
        runs[0].output =
            "# Histogram\n000020 000007\n000041 000009\n# Total: 000000016\n# Min Latencies: 00020\n\
             # Avg Latencies: 00100\n# Max Latencies: 01300\n# Histogram Overflows: 00001\n"
                .into();
        let (html, files) = rendered(&runs, 1);
        assert_eq!(html.matches("<svg").count(), 2, "histogram, share above");
        assert_eq!(html.matches("<a href=").count(), files.len());
        assert!(
            files[1].ends_with(
                ",20,7\nsam9263,6.12/plain,process,1,41,9\nsam9263,6.12/plain,process,1,1300,1\n"
            ),
            "{}",
            files[1]
        );
    }
}
