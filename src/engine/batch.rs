//! Runs the tool calls of one turn and decides which run in parallel.

use crate::call_plan::PreparedCall;
use crate::{Engine, Parallelism, with_time_limit};
use agent_core::message::ToolCall;
use agent_runtime::emitter::EmitError;
use agent_tools::Access;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

/// Maximum number of read-only calls that run at the same time.
const MAX_PARALLEL_READS: usize = 4;
/// The same for calls of any kind (`tools.parallel: all`); an answer may have many times as many.
const MAX_PARALLEL_CALLS: usize = 8;

impl Engine {
    /// Runs the calls of one turn and emits a result for each. `left` is the remaining time of the run.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn run_calls(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        left: Option<Duration>,
    ) -> Result<(), EmitError> {
        let cancel = interrupt.child_token();
        with_time_limit(left, &cancel, self.run_groups(calls, interrupt, &cancel)).await
    }

    async fn run_groups(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let prepared: Vec<PreparedCall<'_>> = calls.iter().map(|call| self.prepare(call)).collect();
        self.has_pending_call.set(false);
        let mut rest = prepared.as_slice();
        while !rest.is_empty() {
            let (group, later) = rest.split_at(self.group_len(rest));
            self.run_group(group, interrupt, cancel).await?;
            if self.has_pending_call.get() {
                return self.ask_later_calls(group, later, interrupt, cancel).await;
            }
            rest = later;
        }
        Ok(())
    }

    /// Requests approval for the calls after `waiting`, so that the user can answer all at once. A call that changes the
    /// same file as an earlier one is not included, because its effect is not known yet.
    async fn ask_later_calls(
        &self,
        waiting: &[PreparedCall<'_>],
        later: &[PreparedCall<'_>],
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let mut taken: BTreeSet<String> =
            waiting.iter().flat_map(|prepared| self.resolved_paths(prepared.written_paths())).collect();
        for prepared in later {
            let written = self.resolved_paths(prepared.written_paths());
            let is_free = written.is_disjoint(&taken);
            taken.extend(written);
            if is_free && self.needs_approval(prepared) && !cancel.is_cancelled() {
                self.run_call(prepared, interrupt, cancel).await?;
            }
        }
        Ok(())
    }

    /// Returns how many of the first calls of `rest` form a group. A call that needs approval is alone, so that its
    /// question is shown directly below it; so is a call that counts towards a limit.
    fn group_len(&self, rest: &[PreparedCall<'_>]) -> usize {
        let counts = |call: &PreparedCall<'_>| call.access != Access::Read && self.guardrails.has_limits();
        let together = |call: &&PreparedCall<'_>| match self.options.parallel {
            Parallelism::Off => false,
            Parallelism::Reads => call.access == Access::Read && !self.needs_approval(call),
            Parallelism::All => !counts(call) && !self.needs_approval(call),
        };
        rest.iter().take_while(together).count().max(1)
    }

    /// Runs `group` in parallel. Locks are granted in the model's order, which is the order of first polling. Each call
    /// acquires its locks in alphabetical order, which prevents deadlocks.
    async fn run_group(
        &self,
        group: &[PreparedCall<'_>],
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let permits = match self.options.parallel {
            Parallelism::Off => 1,
            Parallelism::Reads => MAX_PARALLEL_READS,
            Parallelism::All => MAX_PARALLEL_CALLS,
        };
        let permits = Semaphore::new(permits);
        let written: Vec<BTreeSet<String>> =
            group.iter().map(|prepared| self.resolved_paths(prepared.written_paths())).collect();
        let locks: BTreeMap<&String, Mutex<()>> =
            written.iter().flatten().map(|path| (path, Mutex::new(()))).collect();
        let outcomes = join_all(group.iter().zip(&written).map(async |(prepared, paths)| {
            let mut held = Vec::new();
            for lock in paths.iter().filter_map(|path| locks.get(path)) {
                held.push(lock.lock().await);
            }
            let _permit = permits.acquire().await;
            self.run_call(prepared, interrupt, cancel).await
        }));
        outcomes.await.into_iter().collect()
    }
}
