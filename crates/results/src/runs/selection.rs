// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selections: the options that choose the points of a campaign. A selection identifies a stored campaign, and gives
//! the command that measures this campaign again.

use serde::{Deserialize, Serialize};

use base::shell::quoted;

/// The options of a campaign that decide which points it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Whether to measure the experiment's quick form.
    pub quick: bool,
    /// Seeds that replace the experiment's seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Vec<u64>>,
    /// Boards that replace the experiment's boards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boards: Vec<String>,
    /// Changed numbers of each board, `KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Limit for each point, in seconds of board time. It replaces the experiment's limit. The limit decides which
    /// points fail. It does not change the points of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<f64>,
}

impl Selection {
    /// Selects the experiment's own plan, full or quick.
    pub fn own_plan(quick: bool) -> Selection {
        Selection {
            quick,
            ..Selection::default()
        }
    }

    /// Whether the points are exactly those of the experiment's file.
    pub fn is_own_plan(&self) -> bool {
        self.seeds.is_none() && self.boards.is_empty() && self.set.is_empty()
    }

    /// Returns the command that measures the selection. `experiment` is the name as the user wrote it.
    pub fn command(&self, experiment: &str) -> String {
        let words = ["warmswitch", "run", experiment].map(quoted);
        [words.join(" "), self.options()].join(" ").trim().into()
    }

    /// Returns the options, quoted for a shell. Returns an empty text without options.
    pub fn options(&self) -> String {
        let mut words = Vec::new();
        if self.quick {
            words.push("--quick".to_string());
        }
        let lists = [("--board", &self.boards), ("--set", &self.set)];
        for (option, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            words.extend([option.to_string(), quoted(&list.join(","))]);
        }
        match self.seeds.as_deref() {
            Some([seed]) => words.extend(["--seed".into(), seed.to_string()]),
            // `--seeds N` means seeds 1 to N.
            Some(seeds) => words.extend(["--seeds".into(), seeds.len().to_string()]),
            None => {}
        }
        if let Some(limit) = self.limit_s {
            words.extend(["--limit".into(), limit.to_string()]);
        }
        words.join(" ")
    }

    /// Returns the name of the campaign's file within the experiment.
    pub fn key(&self) -> String {
        let form = if self.quick { "quick" } else { "full" };
        if self.is_own_plan() {
            return form.to_string();
        }
        let points = Selection {
            limit_s: None,
            ..self.clone()
        };
        let hash = blake3::hash(points.options().as_bytes()).to_hex();
        format!("{form}-{}", &hash[..8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Selection {
        Selection {
            quick: true,
            seeds: Some(vec![1, 2, 3]),
            boards: vec!["sam9263".into(), "my boards/x.toml".into()],
            set: vec!["caches.dcache_bytes=32K".into(), "sdram.banks=8".into()],
            limit_s: Some(0.5),
        }
    }

    #[test]
    fn the_command_has_every_option() {
        assert_eq!(
            asked().command("./mine"),
            "warmswitch run ./mine --quick --board 'sam9263,my boards/x.toml' --set \
             caches.dcache_bytes=32K,sdram.banks=8 --seeds 3 --limit 0.5"
        );
        let one = Selection {
            seeds: Some(vec![7]),
            ..Selection::default()
        };
        assert_eq!(one.command("ipc"), "warmswitch run ipc --seed 7");
        assert_eq!(
            Selection::own_plan(false).command("ipc"),
            "warmswitch run ipc"
        );
    }

    #[test]
    fn campaigns_of_other_points_have_other_names_and_a_limit_changes_none() {
        assert_eq!(Selection::own_plan(true).key(), "quick");
        assert_eq!(Selection::own_plan(false).key(), "full");
        let limited = Selection {
            limit_s: Some(9.0),
            ..Selection::own_plan(true)
        };
        assert_eq!(limited.key(), "quick");
        let changes: [fn(&mut Selection); 5] = [
            |_| (),
            |a| a.quick = false,
            |a| a.seeds = Some(vec![3]),
            |a| drop(a.boards.pop()),
            |a| drop(a.set.pop()),
        ];
        let mut keys: Vec<String> = Vec::new();
        for change in changes {
            let mut other = asked();
            change(&mut other);
            keys.push(other.key());
        }
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), changes.len(), "{keys:?}");
    }
}
