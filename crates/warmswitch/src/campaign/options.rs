// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a run that add to `experiment.toml` or override it.

use board::spec::Change;

use crate::campaign::experiment::Experiment;
use base::boards;
use results::runs::selection::Selection;

/// Options for running an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub quick: bool,
    /// Seeds that replace the seeds of the file.
    pub seeds: Option<Vec<u64>>,
    /// Boards that replace the boards of the file. If the list is empty, the boards of the file run.
    pub boards: Vec<String>,
    /// Changed values of board keys. Each board runs twice: unchanged, and with the changed values. If `boards` is
    /// empty, the changes apply to the first board of the file.
    pub changes: Vec<Change>,
    /// Number of points that run at the same time; 0 means one per processor.
    pub jobs: usize,
    /// Limit of board time per point, in seconds. It replaces the limit in the file.
    pub limit_s: Option<f64>,
    /// Whether every board boots instead of using a snapshot.
    pub fresh_boot: bool,
}

impl Options {
    /// Returns the options that identify a campaign, because they decide which points the campaign has.
    pub fn asked(&self) -> Selection {
        Selection {
            quick: self.quick,
            seeds: self.seeds.clone(),
            boards: self.boards.clone(),
            set: self.changes.iter().map(Change::to_string).collect(),
            limit_s: self.limit_s,
        }
    }

    /// Returns the boards that run the first plan. The list is empty if the boards in the file run.
    pub fn boards_of(&self, e: &Experiment) -> Vec<String> {
        let mut boards = self.boards.clone();
        if self.changes.is_empty() {
            return boards;
        }
        if boards.is_empty() {
            boards.push(e.first_board(self.quick).to_string());
        }
        let both = |board: &String| [board.clone(), boards::changed(board, &self.changes)];
        boards.iter().flat_map(both).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_board_stands_beside_the_board_as_it_is() {
        let e = Experiment::load("cyclictest").unwrap();
        let first = e.first_board(true).to_string();
        let mut options = Options {
            quick: true,
            ..Options::default()
        };
        assert!(options.boards_of(&e).is_empty());
        options.changes = vec!["sdram.banks=8".parse().unwrap()];
        let changed = format!("{first}+sdram.banks=8");
        assert_eq!(options.boards_of(&e), [first, changed]);
        options.boards = vec!["s3c24a0".into()];
        assert_eq!(options.boards_of(&e), ["s3c24a0", "s3c24a0+sdram.banks=8"]);
    }
}
