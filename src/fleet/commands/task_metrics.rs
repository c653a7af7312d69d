//! The figures of a task that a worker does.

use crate::commands::context::WorkerContext;
use crate::metrics::{Figure, Metrics};
use agent_core::fleet::TaskRecord;
use agent_core::hub::ActivationKind;
use agent_core::run_result::RunResult;
use std::time::Duration;
use tokio::time::Instant;

/// A task under way.
pub struct TaskMetrics<'a> {
    metrics: &'a Metrics,
    begun: Instant,
}

impl<'a> TaskMetrics<'a> {
    /// Counts the begin of an attempt.
    pub fn begin(worker: &'a WorkerContext<'_>, task: &TaskRecord) -> Self {
        let metrics = &worker.metrics;
        metrics.add(Figure::ActivationsInProgress, &[], 1.0);
        if task.attempt > 1 {
            metrics.add(Figure::ActivationRetries, &[], 1.0);
        } else {
            let waited = Duration::from_secs(worker.now().saturating_sub(task.submitted_at));
            metrics.add_time(Figure::QueueWait, &[], waited);
        }
        Self { metrics, begun: Instant::now() }
    }

    /// Counts its end, which `task` has in its record, and what its run has used.
    pub fn end(self, task: &TaskRecord, run: Option<&RunResult>) {
        let Self { metrics, begun } = self;
        let (agent, kind) = match &task.spec.activation {
            Some(activation) => (activation.agent.as_str(), activation.kind),
            None => (task.spec.agent.as_deref().unwrap_or_default(), ActivationKind::Notification),
        };
        let kind = if task.spec.activation.is_some() { kind.name() } else { "task" };
        let labels = [("agent_id", agent), ("task_type", kind)];
        metrics.add(Figure::Activations, &[labels[0], labels[1], ("status", task.state.name())], 1.0);
        metrics.add_time(Figure::ActivationDuration, &labels, begun.elapsed());
        if let Some(result) = run {
            let usage = &result.usage;
            let tokens = |number: u64| u32::try_from(number).map_or(f64::from(u32::MAX), f64::from);
            let input = usage.input.saturating_add(usage.cached_read).saturating_add(usage.cached_write);
            metrics.add(Figure::Tokens, &[("direction", "input")], tokens(input));
            metrics.add(Figure::Tokens, &[("direction", "output")], tokens(usage.output));
            metrics.add(Figure::Cost, &[], result.cost.total_usd.map_or(0.0, f64::from));
        }
    }
}

impl Drop for TaskMetrics<'_> {
    fn drop(&mut self) {
        self.metrics.add(Figure::ActivationsInProgress, &[], -1.0);
    }
}
