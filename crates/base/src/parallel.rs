// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work on several threads. The number of threads does not change the result.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

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

/// Calls `each` for all items on `jobs` threads, in the order of the items. The items that `each` returns run next. An
/// error does not keep the other items from running. Returns the first error that occurred.
pub fn parallel_and_then<T: Send>(
    items: Vec<T>,
    jobs: usize,
    each: impl Fn(T) -> Result<Vec<T>> + Sync,
) -> Result<()> {
    let waiting = Mutex::new(Waiting {
        items: items.into(),
        running: 0,
        error: None,
    });
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(item) = next(&waiting, &changed) {
                    let _running = Running(&waiting, &changed);
                    let result = each(item);
                    let mut waiting = lock(&waiting);
                    match result {
                        Ok(more) => more
                            .into_iter()
                            .rev()
                            .for_each(|m| waiting.items.push_front(m)),
                        Err(error) => waiting.error = waiting.error.take().or(Some(error)),
                    }
                }
            });
        }
    });
    let waiting = waiting.into_inner();
    let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
    waiting.error.map_or(Ok(()), Err)
}

/// Items that wait for a thread.
struct Waiting<T> {
    items: VecDeque<T>,
    /// Number of items that run. Each of them may return more items.
    running: usize,
    error: Option<anyhow::Error>,
}

/// An item that runs. It also ends if its thread panics, so that no other thread waits for it forever.
struct Running<'a, T>(&'a Mutex<Waiting<T>>, &'a Condvar);

impl<T> Drop for Running<'_, T> {
    fn drop(&mut self) {
        lock(self.0).running -= 1;
        self.1.notify_all();
    }
}

/// Takes the next item. Waits while none is there and a running item may still return some.
fn next<T>(waiting: &Mutex<Waiting<T>>, changed: &Condvar) -> Option<T> {
    let nothing_yet = |waiting: &mut Waiting<T>| waiting.items.is_empty() && waiting.running > 0;
    let mut waiting = changed
        .wait_while(lock(waiting), nothing_yet)
        .unwrap_or_else(PoisonError::into_inner);
    let item = waiting.items.pop_front()?;
    waiting.running += 1;
    Some(item)
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
    fn items_that_an_item_returns_run_next() {
        for jobs in [1, 3] {
            let order = Mutex::new(Vec::new());
            let each = |item: u32| {
                lock(&order).push(item);
                Ok(match item {
                    1 => vec![10, 11],
                    11 => vec![110],
                    _ => Vec::new(),
                })
            };
            parallel_and_then(vec![1, 2, 3], jobs, each).unwrap();
            let mut all = lock(&order).clone();
            if jobs == 1 {
                assert_eq!(all, [1, 10, 11, 110, 2, 3]);
            }
            all.sort_unstable();
            assert_eq!(all, [1, 2, 3, 10, 11, 110]);
        }
    }

    #[test]
    fn a_panic_of_one_item_does_not_keep_the_others_waiting() {
        let each = |item: u32| {
            assert!(item != 1, "one");
            Ok(Vec::new())
        };
        let all = || parallel_and_then(vec![1, 2, 3], 2, each);
        assert!(std::panic::catch_unwind(all).is_err());
    }

    #[test]
    fn an_error_does_not_keep_other_items_from_running() {
        let count = AtomicUsize::new(0);
        let each = |item: u32| {
            count.fetch_add(1, Ordering::Relaxed);
            if item == 1 {
                bail!("one")
            } else {
                Ok(Vec::new())
            }
        };
        let error = parallel_and_then(vec![1, 2, 3], 2, each).unwrap_err();
        assert_eq!(error.to_string(), "one");
        assert_eq!(count.into_inner(), 3);
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
