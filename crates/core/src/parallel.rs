//! Work on many items at once, on several threads.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Splits `count` items into batches, and returns what `work` returns for each batch, in order. Threads take one batch after
/// the other, so batches may take different times. Without a second batch or core, no thread is started.
///
/// ```
/// let sums = patter_core::parallel::map_batches(10, 4, |range| range.sum::<usize>());
/// assert_eq!(sums, [6, 22, 17]);
/// ```
pub fn map_batches<T: Send>(count: usize, batch: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    /// More threads than this would wait for each other.
    const MAX_THREADS: usize = 8;
    let batch = batch.max(1);
    let batches = (0..count).step_by(batch).map(|start| start..count.min(start + batch));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(batches.len());
    if threads < 2 {
        return batches.map(work).collect();
    }
    let open = Mutex::new(batches.enumerate());
    let take_batches = || {
        let next = || open.lock().unwrap_or_else(PoisonError::into_inner).next();
        let mut done = Vec::new();
        while let Some((index, range)) = next() {
            done.push((index, work(range)));
        }
        done
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take_batches)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
