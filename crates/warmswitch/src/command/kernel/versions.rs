// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch kernel versions`: lists the versions, and the patch series and features of each.

use anyhow::Result;
use serde_json::{Value, json};

use crate::Outcome;
use results::render::grid::Grid;
use supply::kernel::versions::{self, Applies, Feature, Version};

/// List the kernel versions, with the patch series that apply to each and the features that each has
///
/// Fetches and unpacks the source of a version if the cache has none.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let features = versions::features()?;
    let all = versions::all(&features)?;
    if args.json {
        let all: Vec<Value> = all
            .iter()
            .map(|version| json_of(version, &features))
            .collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(Outcome::Done);
    }
    for version in &all {
        let from = version.from.as_ref();
        let from = from.map_or(String::new(), |from| format!(", with the series of {from}"));
        let (name, source) = (&version.name, &version.source);
        println!("{name}  {source}, {} variants{from}", version.variants);
        if !source.ends_with(&version.tested) {
            println!("      tested with {}", version.tested);
        }
    }
    println!("\n{}\n{}", series(&all), features_of(&all, &features));
    Ok(Outcome::Done)
}

/// Returns an empty table with these headings and one column per version.
fn headed(first: &[&str], all: &[Version]) -> Grid {
    let names = all.iter().map(|version| version.name.clone());
    let first = first.iter().map(ToString::to_string);
    Grid::new(all.len() + first.len(), first.chain(names))
}

fn series(all: &[Version]) -> Grid {
    let mut grid = headed(&["series, applied in this order"], all);
    for series in all.iter().take(1).flat_map(|version| version.series.keys()) {
        let cells = all.iter().map(|version| shown(&version.series[series]));
        grid.add_row([series.clone()].into_iter().chain(cells));
    }
    grid
}

fn shown(applies: &Applies) -> String {
    match applies {
        Applies::All(count, 0) => format!("{count} apply"),
        Applies::All(count, fixups) => format!("{count} apply, {fixups} fixed up"),
        // Show the series, and the number at the start of the patch's name.
        Applies::Not(patch) => {
            let (series, name) = patch.split_once('/').unwrap_or(("", patch));
            format!("not {series}/{}", name.split('-').next().unwrap_or(name))
        }
    }
}

fn features_of(all: &[Version], features: &[Feature]) -> Grid {
    let mut grid = headed(&["feature", "paper of 2009"], all);
    for (n, feature) in features.iter().enumerate() {
        let cells = all.iter().map(|version| match &version.lacks[n] {
            None => "yes".to_string(),
            Some(probe) => format!("no \"{}\" in {}", probe.text.trim_end(), probe.file),
        });
        let paper = feature.paper.clone().unwrap_or_default();
        grid.add_row([feature.name.clone(), paper].into_iter().chain(cells));
    }
    grid
}

fn json_of(version: &Version, features: &[Feature]) -> Value {
    let series = version.series.iter().map(|(name, applies)| match applies {
        Applies::All(count, fixups) => json!({
            "series": name, "applies": true, "patches": count, "fixups": fixups,
        }),
        Applies::Not(patch) => json!({ "series": name, "applies": false, "fails": patch }),
    });
    let has = features.iter().zip(&version.lacks).map(|(feature, lacks)| {
        let lacks = lacks
            .as_ref()
            .map(|probe| json!({ "file": probe.file, "text": probe.text }));
        json!({ "feature": feature.name, "has": lacks.is_none(), "lacks": lacks })
    });
    json!({
        "version": version.name,
        "from": version.from,
        "source": version.source,
        "tested": version.tested,
        "variants": version.variants,
        "series": series.collect::<Vec<_>>(),
        "features": has.collect::<Vec<_>>(),
    })
}
