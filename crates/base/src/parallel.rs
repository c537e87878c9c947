// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work on several threads. The number of threads does not change the result.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

/// Calls `each` for all items on `jobs` threads. Returns the results in the order of the items, or the first error in
/// that order.
pub fn parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<R>>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = each(item);
                    lock(&results)[at] = Some(result);
                }
            });
        }
    });
    let results = results
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    results.into_iter().flatten().collect()
}

/// Locks a mutex, even if another thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn results_come_in_the_items_order_whatever_the_number_of_threads() {
        let items: Vec<u32> = (0..50).collect();
        for jobs in [1, 2, 7, 100] {
            let doubled = parallel(&items, jobs, |i| Ok(i * 2)).unwrap();
            assert_eq!(doubled, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_of_one_item_is_the_error_of_all() {
        let result = parallel(
            &[1, 2, 3],
            2,
            |i| if *i == 2 { bail!("two") } else { Ok(*i) },
        );
        assert_eq!(result.unwrap_err().to_string(), "two");
    }
}
