//! Bounded buffer of a running child's latest output, with positions from which a reader continues.

use memchr::memchr_iter;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes stored of the end of the output: several replies' worth for a model, and little compared with the agent's memory even
/// for the maximum number of concurrent commands.
pub const RECENT_BYTES: usize = 256 * 1024;

/// Both output streams of one child as they arrive. Clones share the buffer.
#[derive(Debug, Clone, Default)]
pub struct RecentOutput(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    total: u64,
    line_ends: u64,
    is_finished: bool,
}

/// Part of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// Number of bytes of the output before this part.
    pub first: u64,
    /// Bytes of this part.
    pub bytes: Vec<u8>,
}

impl OutputPart {
    /// Returns the position after this part, in bytes.
    pub fn next(&self) -> u64 {
        self.first.saturating_add(self.bytes.len() as u64)
    }
}

impl RecentOutput {
    /// Appends new output.
    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.total = state.total.saturating_add(bytes.len() as u64);
        state.line_ends = state.line_ends.saturating_add(memchr_iter(b'\n', bytes).count() as u64);
        let (_, bytes) = bytes.split_at(bytes.len().saturating_sub(RECENT_BYTES));
        let surplus = (state.bytes.len() + bytes.len()).saturating_sub(RECENT_BYTES);
        state.bytes.drain(..surplus);
        state.bytes.extend(bytes);
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Marks the output as complete.
    pub fn finish(&self) {
        self.state().is_finished = true;
        self.0.changed.notify_waiters();
    }

    /// Returns the number of bytes so far.
    pub fn total(&self) -> u64 {
        self.state().total
    }

    /// Returns the number of lines that have ended so far.
    pub fn line_ends(&self) -> u64 {
        self.state().line_ends
    }

    /// Returns the stored output from byte `from` on, at most its last `most` bytes.
    pub fn tail_from(&self, from: u64, most: usize) -> OutputPart {
        let state = self.state();
        let wanted = usize::try_from(state.total.saturating_sub(from)).unwrap_or(usize::MAX);
        let length = wanted.min(state.bytes.len()).min(most);
        let bytes = state.bytes.range(state.bytes.len().saturating_sub(length)..).copied().collect();
        OutputPart { first: state.total.saturating_sub(length as u64), bytes }
    }

    /// Returns the output from byte `from` on, or from the first byte still stored. At most `most` bytes.
    pub fn read_from(&self, from: u64, most: usize) -> OutputPart {
        let state = self.state();
        let here = state.total.saturating_sub(state.bytes.len() as u64);
        let first = from.clamp(here, state.total);
        let skipped = usize::try_from(first.saturating_sub(here)).unwrap_or(usize::MAX);
        OutputPart { first, bytes: state.bytes.iter().skip(skipped).take(most).copied().collect() }
    }

    /// Waits until there are more than `from` bytes or the output is complete.
    pub async fn wait_for_more(&self, from: u64) {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state();
                if state.is_finished || state.total > from {
                    return;
                }
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[tokio::test]
    async fn a_reader_waits_for_more_or_for_the_end() {
        let recent = RecentOutput::default();
        recent.append(b"ready\n");
        recent.wait_for_more(0).await;
        let part = recent.tail_from(0, 100);
        assert_eq!((part.bytes.as_slice(), part.next()), (b"ready\n".as_slice(), 6));
        let waiter = recent.clone();
        let waiting = tokio::spawn(async move { waiter.wait_for_more(6).await });
        recent.finish();
        waiting.await.unwrap();
    }

    proptest! {
        #[test]
        fn every_part_is_the_end_of_what_was_written(
            lengths in prop::collection::vec(0_usize..200_000, 0..6),
            from in 0_u64..600_000,
            most in 0_usize..300_000,
        ) {
            let recent = RecentOutput::default();
            let mut all = Vec::new();
            for (seed, length) in lengths.into_iter().enumerate() {
                let chunk: Vec<u8> = (0..length).map(|i| (i / 3 + seed).to_le_bytes()[0]).collect();
                recent.append(&chunk);
                all.extend(chunk);
            }
            let part = recent.tail_from(from, most);
            prop_assert_eq!(part.next(), all.len() as u64);
            prop_assert!(all.ends_with(&part.bytes));
            prop_assert!(part.bytes.len() <= most.min(RECENT_BYTES));
            let wanted = all.len().saturating_sub(usize::try_from(from).unwrap());
            prop_assert_eq!(part.bytes.len(), wanted.min(most).min(RECENT_BYTES));
            let part = recent.read_from(from, most);
            let first = usize::try_from(part.first).unwrap();
            prop_assert!(all[first..].starts_with(&part.bytes));
            prop_assert!(part.bytes.len() == most || part.next() == all.len() as u64);
        }
    }
}
