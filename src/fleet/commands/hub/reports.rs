//! What an activation reports: to the Hub what it has used and why it failed, to the user what the Hub could not be told, and figures.

use crate::commands::hub::activation::ActivationRun;
use crate::hub::api::BudgetHealth;
use crate::metrics::Figure;
use agent_core::run_result::RunResult;
use agent_messages as messages;
use agent_terminal::Style;
use serde_json::json;

/// US dollars for a million input and output tokens of a model whose price is not known: the Hub's budget must not last for ever.
const DEFAULT_PRICE: (f64, f64) = (3.0, 15.0);

impl ActivationRun<'_> {
    /// Logs that the Hub could not be told something.
    pub(super) fn note(&self, what: &str, told: Result<(), String>) {
        let worker = self.claim.worker;
        if let Err(why) = told {
            worker.log(Style::Warning, &messages::hub_not_told(what, &why, worker.language));
        }
    }

    /// Sets the figures of the budget.
    pub(super) fn note_budget(&self, budget: &BudgetHealth) {
        let periods = [
            ("daily", budget.daily_limit, budget.daily_used),
            ("monthly", budget.monthly_limit, budget.monthly_used),
        ];
        for (period, limit, used) in periods {
            let labels = [("agent_id", self.activation.agent.as_str()), ("period", period)];
            let metrics = &self.claim.worker.metrics;
            for (figure, amount) in [(Figure::BudgetUsed, used), (Figure::BudgetLimit, limit)] {
                if let Some(amount) = amount {
                    metrics.set(figure, &labels, amount);
                }
            }
            if let (Some(limit), Some(used)) = (limit.filter(|limit| *limit > 0.0), used) {
                metrics.set(Figure::BudgetHealth, &labels, (1.0 - used / limit).max(0.0));
            }
        }
    }

    /// Tells the Hub what the run has used.
    pub(super) async fn report_consumption(&self, result: &RunResult) {
        let usage = &result.usage;
        let (input, output) = (usage.input + usage.cached_read + usage.cached_write, usage.output);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let estimate = || (input as f64 * DEFAULT_PRICE.0 + output as f64 * DEFAULT_PRICE.1) / 1e6;
        let body = json!({
            "agent_id": self.activation.agent,
            "tokens_input": input,
            "tokens_output": output,
            "cost_usd": result.cost.total_usd.map_or_else(estimate, f64::from),
        });
        let key = format!("{}:consumption-{}", self.claim.task.id, self.claim.task.attempt);
        let told = self.hub.client.tell("/api/v1/system/consumption", &body, &key).await;
        self.note("what the activation has used", told.map_err(|error| error.to_string()));
    }

    /// Posts the report of a failure, once for all attempts.
    pub(super) async fn report_failure(&self, why: &str) {
        if !self.may_post() {
            return;
        }
        let (agent, worker) = (&self.activation.agent, self.claim.worker);
        let content = format!("{}\n\n{}", messages::hub_error_title(agent), worker.app.redact(why));
        let title = messages::hub_error_title(agent);
        let posted = self.outbox.report(messages::HUB_ERRORS, &title, &content).await;
        self.note("of the failure", posted.map(drop).map_err(|error| error.why().to_owned()));
    }
}
