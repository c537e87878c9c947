// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histogram text of rt-tests, as `cyclictest -h N` prints it for all threads, with or without `--histofall`.

use anyhow::{Context as _, Result, bail};

const HEADING: &str = "# Histogram";
/// Largest plausible count of latencies.
const MOST_TIMES: u64 = 1_000_000_000_000;

/// One thread's latencies in whole microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Microseconds and count of each bin, in ascending order, without empty bins.
    pub us: Vec<(u32, u64)>,
    /// Number of latencies beyond the last bin. Of these latencies, only the largest is known (`max_us`).
    pub overflows: u64,
    /// Largest latency in microseconds, overflows included.
    pub max_us: u32,
    /// Average in whole microseconds, as the program prints it.
    pub avg_us: u32,
}

impl Thread {
    /// Number of latencies in the bins.
    fn counted(&self) -> u64 {
        self.us.iter().map(|(_, n)| n).sum()
    }
}

/// Returns the numbers of the lines that begin a histogram, counted from 1.
pub fn headings(text: &str) -> impl Iterator<Item = usize> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(n, line)| (line.trim() == HEADING).then_some(n + 1))
}

/// Values of the lines below the bins, one for each thread. With `--histofall`, maxima and overflows have one more
/// value, for all threads together.
#[derive(Default)]
struct Summary {
    total: Option<Vec<u64>>,
    min: Option<Vec<u64>>,
    avg: Option<Vec<u64>>,
    max: Option<Vec<u64>>,
    overflows: Option<Vec<u64>>,
}

impl Summary {
    /// Returns the field that a line's values belong to, and the text of the values.
    fn place<'a>(&mut self, line: &'a str) -> Option<(&mut Option<Vec<u64>>, &'a str)> {
        let places = [
            ("# Total:", &mut self.total),
            ("# Min Latencies:", &mut self.min),
            ("# Avg Latencies:", &mut self.avg),
            ("# Max Latencies:", &mut self.max),
            ("# Histogram Overflows:", &mut self.overflows),
        ];
        let mut places = places.into_iter();
        places.find_map(|(start, place)| Some((place, line.strip_prefix(start)?)))
    }
}

/// Reads the first histogram of the text. Returns the threads that woke at least once.
pub fn read(text: &str) -> Result<Vec<Thread>> {
    let mut rows: Vec<(u32, Vec<u64>)> = Vec::new();
    let mut summary = Summary::default();
    let start = headings(text).next();
    let start = start.context("there is no line \"# Histogram\": run cyclictest with -h")?;
    for (n, line) in text.lines().enumerate().skip(start) {
        let line = line.trim();
        let expected = |what: &str| format!("line {}: \"{line}\": {what} expected", n + 1);
        if let Some((place, values)) = summary.place(line) {
            let values = numbers(values.split_whitespace());
            *place = Some(values.with_context(|| expected("a number for each thread is"))?);
            if summary.overflows.is_some() {
                break;
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let row = row(line).with_context(|| expected("microseconds and counts are"))?;
            if rows.last().is_some_and(|(us, _)| *us >= row.0) {
                bail!(expected("a longer latency than in the line before is"));
            }
            rows.push(row);
        }
    }
    threads(&rows, &summary)
}

/// Reads a bin: microseconds, and a count for each thread.
fn row(line: &str) -> Option<(u32, Vec<u64>)> {
    let mut words = line.split_whitespace();
    let us = words.next()?.parse().ok()?;
    let counts = numbers(words).filter(|counts| !counts.is_empty())?;
    Some((us, counts))
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    let number = |word: &str| word.parse().ok().filter(|n| *n <= MOST_TIMES);
    words.map(number).collect()
}

fn threads(rows: &[(u32, Vec<u64>)], summary: &Summary) -> Result<Vec<Thread>> {
    let wanted = |values: &Option<Vec<u64>>, name: &str| {
        values.clone().with_context(|| {
            format!("the histogram ends without its line \"# {name}\": it is cut off")
        })
    };
    let (min, avg) = (
        wanted(&summary.min, "Min Latencies")?,
        wanted(&summary.avg, "Avg Latencies")?,
    );
    let (max, overflows) = (
        wanted(&summary.max, "Max Latencies")?,
        wanted(&summary.overflows, "Histogram Overflows")?,
    );
    let count = min.len();
    // An additional value after the threads' values is for all threads together.
    let fits = |n: usize| n == count || n == count + 1;
    if avg.len() != count || !fits(max.len()) || !fits(overflows.len()) {
        bail!("the lines below the histogram disagree: one is of {count} threads, another is not");
    }
    let counts = rows.iter().flat_map(|(_, row)| row);
    if counts.fold(0, |sum: u64, n| sum.saturating_add(*n)) > 2 * MOST_TIMES {
        bail!("the histogram is damaged: its counts are impossibly large");
    }
    if let Some((us, row)) = rows.iter().find(|(_, row)| !fits(row.len())) {
        bail!(
            "the histogram is damaged: bin {us} has {} counts, the lines below are of {count} threads",
            row.len()
        );
    }
    if let Some((us, _)) = rows.iter().find(|(_, row)| !sums(row, count)) {
        bail!("the histogram is damaged: the last count of bin {us} is not the sum of the others");
    }
    let mut woke = Vec::new();
    for n in 0..count {
        let bins = rows.iter().map(|(us, row)| (*us, row[n]));
        let microseconds = |value: u64| u32::try_from(value).context("a latency is above an hour");
        let us: Vec<(u32, u64)> = bins.filter(|(_, count)| *count > 0).collect();
        // A thread that never woke has no valid minimum and maximum.
        if us.is_empty() && overflows[n] == 0 {
            continue;
        }
        let thread = Thread {
            us,
            overflows: overflows[n],
            max_us: microseconds(max[n])?,
            avg_us: microseconds(avg[n])?,
        };
        let total = summary.total.as_ref().and_then(|all| all.get(n));
        check(&thread, min[n], total.copied()).with_context(|| format!("thread {n}"))?;
        woke.push(thread);
    }
    if woke.is_empty() {
        bail!("the histogram is empty");
    }
    Ok(woke)
}

/// Returns whether the count for all threads is the sum of the threads' counts. Returns true if there is no such count.
fn sums(row: &[u64], count: usize) -> bool {
    row.get(count)
        .is_none_or(|all| row[..count].iter().sum::<u64>() == *all)
}

/// Refuses a thread whose summary lines contradict its bins, because lines are missing or were changed.
fn check(thread: &Thread, min: u64, total: Option<u64>) -> Result<()> {
    let counted = thread.counted();
    if let Some(total) = total.filter(|total| *total != counted) {
        bail!("the histogram is damaged: {counted} latencies are in it, \"# Total\" says {total}");
    }
    let (first, last) = (thread.us.first(), thread.us.last());
    if let Some((us, _)) = first.filter(|(us, _)| u64::from(*us) != min) {
        bail!("the histogram is damaged: it begins at {us} us, \"# Min Latencies\" says {min}");
    }
    let max = thread.max_us;
    let fits = |(us, _): &&(u32, u64)| *us == max || (thread.overflows > 0 && *us < max);
    if let Some((us, _)) = last.filter(|bin| !fits(bin)) {
        bail!("the histogram is damaged: it ends at {us} us, \"# Max Latencies\" says {max}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads of rt-tests 1.x. The second thread has a latency beyond the bins.
    const TWO: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\t000000\n000001 000003\t000000\n\
        000002 000001\t000009\n# Total: 000000004 000000009\n# Min Latencies: 00001 00002\n\
        # Avg Latencies: 00001 00007\n# Max Latencies: 00002 00050\n# Histogram Overflows: 00000 00001\n\
        # Histogram Overflow at cycle number:\n# Thread 0:\n# Thread 1: 00004\n\n";

    fn error(text: &str) -> String {
        format!("{:#}", read(text).unwrap_err())
    }

    #[test]
    fn every_thread_has_its_bins_and_what_is_beyond_them() {
        let threads = read(TWO).unwrap();
        assert_eq!(threads[0].us, [(1, 3), (2, 1)]);
        assert_eq!(
            threads[1],
            Thread {
                us: vec![(2, 9)],
                overflows: 1,
                max_us: 50,
                avg_us: 7
            }
        );
        // rt-tests 2.5 and later print no total, and no lines for empty bins.
        let later = TWO
            .replace("# Total: 000000004 000000009\n", "")
            .replace("000000 000000\t000000\n", "");
        assert_eq!(read(&later).unwrap(), threads);
        assert_eq!(read(&TWO.replace('\n', "\r\n")).unwrap(), threads);
    }

    #[test]
    fn histofall_adds_a_column_of_all_threads_that_has_to_be_their_sum() {
        let of_all = TWO
            .replace("000001 000003\t000000", "000001 000003\t000000\t000003")
            .replace("000002 000001\t000009", "000002 000001\t000009\t000010")
            .replace("000000 000000\t000000", "000000 000000\t000000\t000000")
            .replace("00002 00050", "00002 00050 00050")
            .replace("Overflows: 00000 00001", "Overflows: 00000 00001 00001");
        assert_eq!(read(&of_all).unwrap(), read(TWO).unwrap());
        let wrong = error(&of_all.replace("000009\t000010", "000009\t000011"));
        assert!(wrong.contains("bin 2") && wrong.contains("sum"), "{wrong}");
    }

    #[test]
    fn a_thread_that_never_woke_is_left_out() {
        let text = TWO
            .replace("\t000009", "\t000000")
            .replace("00004 000000009", "00004 000000000")
            .replace("Min Latencies: 00001 00002", "Min Latencies: 00001 1000000")
            .replace("Overflows: 00000 00001", "Overflows: 00000 00000");
        assert_eq!(read(&text).unwrap().len(), 1);
    }

    #[test]
    fn what_is_cut_off_or_changed_is_named_with_its_line() {
        let cut = TWO.find("# Avg").unwrap();
        assert!(error(&TWO[..cut]).contains("without its line \"# Avg Latencies\""));
        assert!(error(&TWO.replace("000001 000003", "000001 00x003")).starts_with("line 4: "));
        assert!(error(&TWO.replace("000001 000003", "000001 -00003")).starts_with("line 4: "));
        assert!(error(&TWO.replace("000002 000001", "000001 000001")).contains("longer latency"));
        assert!(
            error(&TWO.replace("000001 000003\t000000\n", "")).contains("\"# Total\" says 4"),
            "a bin is missing"
        );
        let no_total = TWO.replace("# Total: 000000004 000000009\n", "");
        assert!(error(&no_total.replace("000001 000003\t000000\n", "")).contains("begins at 2 us"));
        assert!(error(&TWO.replace("00002 00050", "00009 00050")).contains("ends at 2 us"));
        assert!(error(&TWO.replace("00001 00007", "00001")).contains("of 2 threads"));
        assert!(error(&TWO.replace("\t000009", "")).contains("1 counts"));
        assert!(error("").contains("# Histogram"));
        let huge = TWO.replace("000000009", "99999999999999");
        assert!(
            error(&huge).contains("a number for each thread"),
            "{}",
            error(&huge)
        );
    }
}
