// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures one point on one machine: types the command, takes the counters, reads the output.

use anyhow::{Result, bail};
use board::BoardBus;

use crate::instrument::Setup;
use crate::session::Session;
use results::runs::markers::between_markers;
use results::runs::point::Point;
use results::runs::run::{Provenance, Run};

/// Measures a point on a booted machine, as `provenance` and `instruments` describe it. Calls `seen` after the command.
/// Returns the run and the console output. In the run, its own name and the experiment's name are still empty.
pub fn measure<B: BoardBus>(
    session: &mut Session<B>,
    instruments: &Setup,
    kind: &str,
    point: &Point,
    provenance: &Provenance,
    limit_s: f64,
    seen: &dyn Fn(&Session<B>),
) -> Result<(Run, Vec<u8>)> {
    let mut bench = instruments.put_on(session, point)?;
    let measured = session.run_guest_beside(&provenance.command, limit_s, &mut bench)?;
    seen(session);
    let text = String::from_utf8_lossy(&measured.console);
    let (output, status) = between_markers(&text)?;
    if status != 0 {
        bail!(
            "{} ended with {status}: {}",
            provenance.command,
            output.trim()
        );
    }
    let run = Run {
        format: Run::FORMAT,
        hash: String::new(),
        experiment: String::new(),
        point: point.clone(),
        cpu_hz: session.cpu_hz(),
        kind: kind.to_string(),
        output: output.to_string(),
        seen: bench.seen(session)?,
        ring: measured.windows[0].clone(),
        overhead: measured.windows[1].clone(),
        whole: measured.whole.clone(),
        end_cycle: session.now(),
        engine: session.engine().to_string(),
        provenance: provenance.clone(),
    };
    Ok((run, measured.console.clone()))
}
