// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains where the cycles of a guest went (docs/use/EXPLAIN.md): runs a board with a ledger ([`watch::ledger`]), and
//! reports its charges by task and function.

pub mod account;
pub mod anatomy;
pub mod autopsy;
pub mod chosen;
pub mod cost;
pub mod files;
pub mod late;
pub mod latency_choice;
pub mod output;
pub mod overhead;
pub mod perfetto;
pub mod populations;
pub mod preemption;
pub mod ready;
pub mod render;
pub mod rerun;
pub mod run_snapshots;
pub mod sets;
pub mod setup;
pub mod worst;
