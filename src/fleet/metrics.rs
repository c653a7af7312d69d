//! Figures of a process of the fleet, in the text format of Prometheus.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Most series of one figure; further labels are not counted.
const MAX_SERIES: usize = 10_000;

/// The kind of a figure, which says how it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    /// A sum and a count.
    Summary,
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::EnumIter)]
pub enum Figure {
    /// Ended activations and tasks.
    Activations,
    /// Their time.
    ActivationDuration,
    /// Those under way.
    ActivationsInProgress,
    /// Attempts after the first one.
    ActivationRetries,
    /// Tasks that wait.
    QueueDepth,
    /// Tasks that workers do.
    QueueActiveTasks,
    /// Time from the submission of a task to its first attempt.
    QueueWait,
    /// Agents that wait after failures.
    AgentsInBackoff,
    /// How long such an agent still waits.
    BackoffRemaining,
    /// This process.
    RunnerInfo,
    /// Workers with a task.
    RunnersActive,
    /// When this process last looked for work.
    Heartbeat,
    /// Whether this process feeds the queue.
    IsLeader,
    /// Time of a look at the Hub.
    PollDuration,
    /// Tokens.
    Tokens,
    /// Known costs.
    Cost,
    /// Budget of an agent that is used.
    BudgetUsed,
    /// Its limit.
    BudgetLimit,
    /// The part that is left.
    BudgetHealth,
}

impl Figure {
    fn about(self) -> (&'static str, Kind, &'static str) {
        use Kind::{Counter, Gauge, Summary};
        match self {
            Self::Activations => ("activations_total", Counter, "Ended activations and tasks"),
            Self::ActivationDuration => {
                ("activation_duration_seconds", Summary, "Time of activations and tasks")
            }
            Self::ActivationsInProgress => {
                ("activations_in_progress", Gauge, "Activations and tasks under way")
            }
            Self::ActivationRetries => ("activation_retries_total", Counter, "Attempts after the first one"),
            Self::QueueDepth => ("queue_depth", Gauge, "Tasks that wait"),
            Self::QueueActiveTasks => ("queue_active_tasks", Gauge, "Tasks that workers do"),
            Self::QueueWait => ("queue_wait_seconds", Summary, "Time from submission to the first attempt"),
            Self::AgentsInBackoff => ("queue_agents_in_backoff", Gauge, "Agents that wait after failures"),
            Self::BackoffRemaining => {
                ("agent_backoff_seconds_remaining", Gauge, "How long an agent still waits")
            }
            Self::RunnerInfo => ("runner_info", Gauge, "This process"),
            Self::RunnersActive => ("runners_active", Gauge, "Workers with a task"),
            Self::Heartbeat => ("runner_heartbeat_timestamp_seconds", Gauge, "When it last looked for work"),
            Self::IsLeader => ("coordinator_is_leader", Gauge, "Whether it feeds the queue"),
            Self::PollDuration => ("poll_duration_seconds", Summary, "Time of a look at the Hub"),
            Self::Tokens => ("tokens_consumed_total", Counter, "Tokens of activations and tasks"),
            Self::Cost => ("activation_cost_usd_total", Counter, "Known costs in US dollars"),
            Self::BudgetUsed => ("budget_used_usd", Gauge, "Used budget of an agent in US dollars"),
            Self::BudgetLimit => ("budget_limit_usd", Gauge, "Budget of an agent in US dollars"),
            Self::BudgetHealth => ("budget_health_ratio", Gauge, "Part of the budget that is left"),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Value {
    sum: f64,
    count: u64,
}

/// Labels as they are written, with the value.
type Series = BTreeMap<String, Value>;

/// The figures.
#[derive(Debug, Default)]
pub struct Metrics(RefCell<BTreeMap<Figure, Series>>);

impl Metrics {
    /// Adds to a figure, which may be negative for one that goes up and down.
    pub fn add(&self, figure: Figure, labels: &[(&str, &str)], amount: f64) {
        self.change(figure, labels, |value| {
            value.sum += amount;
            value.count += 1;
        });
    }

    /// Adds a time to a figure.
    pub fn add_time(&self, figure: Figure, labels: &[(&str, &str)], time: Duration) {
        self.add(figure, labels, time.as_secs_f64());
    }

    /// Sets a figure.
    pub fn set(&self, figure: Figure, labels: &[(&str, &str)], amount: f64) {
        self.change(figure, labels, |value| value.sum = amount);
    }

    /// Removes all series of a figure.
    pub fn clear(&self, figure: Figure) {
        self.0.borrow_mut().remove(&figure);
    }

    fn change(&self, figure: Figure, labels: &[(&str, &str)], change: impl FnOnce(&mut Value)) {
        let mut all = self.0.borrow_mut();
        let series = all.entry(figure).or_default();
        let key = written(labels);
        if series.len() < MAX_SERIES || series.contains_key(&key) {
            change(series.entry(key).or_default());
        }
    }

    /// Returns the figures as text; their names begin with `prefix`.
    pub fn text(&self, prefix: &str) -> String {
        let mut text = String::new();
        for (figure, series) in self.0.borrow().iter() {
            let (name, kind, help) = figure.about();
            let kind_name = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Summary => "summary",
            };
            let _infallible =
                writeln!(text, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind_name}");
            for (labels, Value { sum, count }) in series {
                let _infallible = match kind {
                    Kind::Summary => {
                        writeln!(
                            text,
                            "{prefix}{name}_sum{labels} {sum}\n{prefix}{name}_count{labels} {count}"
                        )
                    }
                    Kind::Counter | Kind::Gauge => writeln!(text, "{prefix}{name}{labels} {sum}"),
                };
            }
        }
        text
    }
}

/// Returns labels as they are written, with escaped values.
fn written(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pair = |(name, value): &(&str, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    format!("{{{}}}", labels.iter().map(pair).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use strum::IntoEnumIterator;

    /// The names of the system whose metrics these are.
    const NAMES: &str = "activations_total activation_duration_seconds activations_in_progress queue_depth queue_active_tasks
        queue_agents_in_backoff runner_info runners_active runner_heartbeat_timestamp_seconds coordinator_is_leader
        poll_duration_seconds tokens_consumed_total activation_cost_usd_total budget_used_usd budget_limit_usd budget_health_ratio
        queue_wait_seconds agent_backoff_seconds_remaining activation_retries_total";

    #[test]
    fn b16_the_figures_have_their_names() {
        let own: BTreeSet<&str> = Figure::iter().map(|figure| figure.about().0).collect();
        assert_eq!(own, NAMES.split_whitespace().collect());
        assert_eq!(own.len(), Figure::iter().count());
    }

    #[test]
    fn b16_hostile_labels_are_escaped() {
        let metrics = Metrics::default();
        metrics.add(Figure::Activations, &[("agent_id", "a\"} 1\nx")], 1.0);
        metrics.add_time(Figure::PollDuration, &[], Duration::from_millis(500));
        metrics.add_time(Figure::PollDuration, &[], Duration::from_millis(250));
        assert_eq!(
            metrics.text("botburrow_"),
            "# HELP botburrow_activations_total Ended activations and tasks
# TYPE botburrow_activations_total counter
botburrow_activations_total{agent_id=\"a\\\"} 1\\nx\"} 1
# HELP botburrow_poll_duration_seconds Time of a look at the Hub
# TYPE botburrow_poll_duration_seconds summary
botburrow_poll_duration_seconds_sum 0.75
botburrow_poll_duration_seconds_count 2
"
        );
    }
}
