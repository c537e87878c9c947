// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a timeline for Perfetto. The timeline shows all tasks. For each latency that was broken down, it also shows
//! phases, tasks, interrupts, functions, sections with masked interrupts, and misses.
//!
//! The messages declare only the fields of Perfetto's `trace.proto` that this program uses (protos/perfetto/trace,
//! TrackEvent).

use board::BoardSpec;
use prost::Message;
use watch::ledger::{CellId, Ledger, MissCause, Sample, Step, StepKind};

use crate::explain::account::{Account, kind_name};
use crate::explain::autopsy::{kept_on, phases};

/// Number of the only sequence of packets.
const SEQUENCE: u32 = 1;
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;

/// The root message of a file.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

fn text_note(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_string()),
        string_value: Some(value.to_string()),
        uint_value: None,
    }
}

fn number_note(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_string()),
        string_value: None,
        uint_value: Some(value),
    }
}

/// Collects the packets of a file.
struct Writer<'a> {
    account: &'a Account<'a>,
    cpu_hz: u64,
    packets: Vec<Packet>,
    tracks: u64,
}

impl Writer<'_> {
    fn track(&mut self, name: &str, parent: Option<u64>) -> u64 {
        self.tracks += 1;
        self.packets.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(name.to_string()),
                parent_uuid: parent,
            }),
            ..Packet::default()
        });
        self.tracks
    }

    fn event(
        &mut self,
        cycle: u64,
        track: u64,
        kind: i32,
        name: Option<&str>,
        notes: Vec<DebugAnnotation>,
    ) {
        let ns = u128::from(cycle) * 1_000_000_000 / u128::from(self.cpu_hz);
        self.packets.push(Packet {
            timestamp: Some(ns as u64),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(TrackEvent {
                debug_annotations: notes,
                r#type: Some(kind),
                track_uuid: Some(track),
                name: name.map(str::to_string),
            }),
            track_descriptor: None,
        });
    }

    fn slice(&mut self, track: u64, (from, to): (u64, u64), name: &str) {
        if from < to {
            let notes = vec![number_note("cycles", to - from)];
            self.event(from, track, SLICE_BEGIN, Some(name), notes);
            self.event(to, track, SLICE_END, None, Vec::new());
        }
    }

    /// Adds a slice for each sequence of steps with equal names. Steps without a name get no slice.
    fn stretches(&mut self, track: u64, sample: &Sample, name: impl Fn(CellId) -> Option<String>) {
        let mut open: Option<(u64, String)> = None;
        for Step { cycle, cell, .. } in &sample.steps {
            let next = name(*cell);
            if open.as_ref().map(|(_, name)| name) != next.as_ref() {
                if let Some((since, name)) = open.take() {
                    self.slice(track, (since, *cycle), &name);
                }
                open = next.map(|name| (*cycle, name));
            }
        }
        if let Some((since, name)) = open {
            self.slice(track, (since, sample.user), &name);
        }
    }

    fn masked(&mut self, track: u64, sample: &Sample) {
        let name = |cell| self.account.function(self.account.owner(cell).function);
        let mut stretches = Vec::new();
        let masked = sample.masked;
        let mut open = masked.map(|masked| (masked.since, name(masked.at)));
        for step in &sample.steps {
            match (step.kind, open) {
                (StepKind::Masked(true), None) => open = Some((step.cycle, name(step.cell))),
                (StepKind::Masked(false), Some((since, name))) => {
                    stretches.push((since, step.cycle, name.to_string()));
                    open = None;
                }
                _ => {}
            }
        }
        if let Some((since, name)) = open {
            stretches.push((since, sample.user, name.to_string()));
        }
        for (from, to, name) in stretches {
            self.slice(track, (from, to), &name);
        }
    }

    fn misses(&mut self, track: u64, sample: &Sample) {
        for step in &sample.steps {
            let StepKind::Missed { miss, mva, cycles } = step.kind else {
                continue;
            };
            let account = self.account;
            let who = |cell| {
                let owner = account.owner(cell);
                format!(
                    "{} ({})",
                    account.function(owner.function),
                    account.place(owner)
                )
            };
            let by = match miss.by {
                MissCause::First => "never there before".to_string(),
                MissCause::Replaced(by) => format!("replaced by {}", who(by)),
                MissCause::Invalidated(by) => format!("invalidated by {}", who(by)),
            };
            let notes = vec![
                text_note("of", &who(miss.of)),
                text_note("by", &by),
                text_note("mva", &format!("{:#010x}", mva.0)),
                number_note("cycles", cycles),
            ];
            self.event(
                step.cycle,
                track,
                INSTANT,
                Some(kind_name(miss.kind)),
                notes,
            );
        }
    }

    fn latency(&mut self, number: usize, sample: &Sample) {
        let account = self.account;
        let task = account.task(sample.task);
        let whole = self.track(&format!("latency {number} of {task}"), None);
        self.slice(
            whole,
            (sample.rise, sample.user),
            &format!("line {}", sample.line),
        );
        let track = self.track("phases", Some(whole));
        let mut from = sample.rise;
        for phase in phases(sample, account) {
            self.slice(track, (from, from + phase.cycles), phase.name);
            from += phase.cycles;
        }
        let owner = |cell| account.owner(cell);
        let track = self.track("task", Some(whole));
        self.stretches(track, sample, |c| {
            Some(account.task(owner(c).task).to_string())
        });
        let track = self.track("interrupt", Some(whole));
        self.stretches(track, sample, |c| {
            owner(c).interrupt.map(|_| account.place(owner(c)))
        });
        let track = self.track("interrupts masked", Some(whole));
        self.masked(track, sample);
        let track = self.track("after the interrupt, before the scheduler", Some(whole));
        if let Some((from, to, call)) = kept_on(sample, account) {
            let chain = account.chain(call);
            self.slice(track, (from, to), chain.last().copied().unwrap_or("?"));
        }
        let track = self.track("function", Some(whole));
        self.stretches(track, sample, |c| {
            Some(account.function(owner(c).function).to_string())
        });
        let track = self.track("misses", Some(whole));
        self.misses(track, sample);
    }
}

/// Returns the bytes of the file. The file has all context switches, and the given latencies. The ledger must have kept
/// the steps of these latencies.
pub fn trace(
    ledger: &Ledger,
    account: &Account<'_>,
    spec: &BoardSpec,
    (latencies, end): (&[(usize, &Sample)], u64),
) -> Vec<u8> {
    let mut writer = Writer {
        account,
        cpu_hz: spec.cpu_hz,
        packets: Vec::new(),
        tracks: 0,
    };
    let track = writer.track("tasks, from scheduler entry on", None);
    let ends = ledger.switches().iter().skip(1).map(|switch| switch.cycle);
    for (switch, to) in ledger.switches().iter().zip(ends.chain([end])) {
        writer.slice(track, (switch.cycle, to), account.task(switch.to));
    }
    for (number, sample) in latencies {
        writer.latency(*number, sample);
    }
    Trace {
        packet: writer.packets,
    }
    .encode_to_vec()
}
