// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an experiment is run, as far as its file does not say.

use board::spec::Change;

use crate::campaign::experiment::Experiment;
use base::boards;
use results::runs::selection::Selection;

/// How to run an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub quick: bool,
    /// Instead of the file's seeds.
    pub seeds: Option<Vec<u64>>,
    /// Instead of the file's boards, if there are any.
    pub boards: Vec<String>,
    /// Numbers of these boards, or of the file's first, that are changed beside the boards as they
    /// are.
    pub changes: Vec<Change>,
    /// Points at a time; 0 for one per processor.
    pub jobs: usize,
    /// Board seconds per point instead of the file's.
    pub limit_s: Option<f64>,
    /// Without snapshots.
    pub fresh_boot: bool,
}

impl Options {
    /// What decides which points there are.
    pub fn asked(&self) -> Selection {
        Selection {
            quick: self.quick,
            seeds: self.seeds.clone(),
            boards: self.boards.clone(),
            set: self.changes.iter().map(Change::to_string).collect(),
            limit_s: self.limit_s,
        }
    }

    /// Boards that run the first plan; none when the file says which.
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
