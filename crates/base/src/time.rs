// SPDX-License-Identifier: MIT OR Apache-2.0
//! Board time from core cycles, and CPU time of the host.

use anyhow::{Context as _, Result, bail};
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of this process, in seconds.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the CPU time of this thread, in seconds.
pub fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The processes whose CPU time is read from `/proc/PID/stat`. The value of a variant is the number of the field with
/// the user time. The system time is in the next field.
#[derive(Clone, Copy)]
pub enum CpuTimeOf {
    /// All threads of the process.
    Process = 14,
    /// Children of the process that ended and were waited for.
    Children = 16,
}

/// Returns the user and system CPU time of a process, in seconds. `process` is `self` or a number.
pub fn cpu_s_of(process: &str, whose: CpuTimeOf) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name, in brackets, may contain any character. Field 3 follows the last bracket.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = rest.split_whitespace().skip(whose as usize - 3).take(2);
    let times: Vec<u64> = times.filter_map(|field| field.parse().ok()).collect();
    let [user, system] = times[..] else {
        anyhow::bail!("{path}: no CPU times in it");
    };
    Ok((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Converts a core cycle to nanoseconds since power-on, rounded to the nearest nanosecond.
pub fn nanoseconds(cycle: u64, cpu_hz: u64) -> u64 {
    let twice = u128::from(cycle) * 2_000_000_000 / u128::from(cpu_hz);
    (twice.div_ceil(2)) as u64
}

/// Fails unless `value`, given by the option `name`, is a number of seconds above 0.
pub fn seconds(name: &str, value: f64) -> Result<()> {
    if !(value > 0.0 && value.is_finite()) {
        bail!("--{name} {value}: not a number of seconds above 0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{CpuTimeOf, cpu_s_of, nanoseconds, seconds};

    #[test]
    fn times_of_a_process_and_of_its_children_are_read() {
        assert!(cpu_s_of("self", CpuTimeOf::Process).unwrap() >= 0.0);
        assert!(cpu_s_of("self", CpuTimeOf::Children).unwrap() >= 0.0);
        assert!(cpu_s_of("no-such-process", CpuTimeOf::Process).is_err());
    }

    #[test]
    fn cycles_are_rounded_to_the_nearest_nanosecond() {
        let hz = 180_000_000;
        let ns: Vec<u64> = [0, 1, 2, 9, 180_000_000].map(|c| nanoseconds(c, hz)).into();
        assert_eq!(ns, [0, 6, 11, 50, 1_000_000_000]);
        assert_eq!(nanoseconds(1, 600_000_000), 2);
    }

    #[test]
    fn a_limit_is_a_number_of_seconds_above_0() {
        assert!(seconds("limit", 0.5).is_ok());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = seconds("limit", bad).unwrap_err().to_string();
            assert!(error.starts_with("--limit "), "{error}");
        }
    }
}
