//! Runs for a program that drives this one: their arguments, their shared budget, and one run.

use crate::commands::run_args::{LIMITS, RunOptions};
use agent_config::flag_values::parse_usd;
use agent_core::budget_share::BudgetCap;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_report::OutputFormat;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_session::total_budget::TotalBudget;
use clap::Args;
use std::rc::Rc;

/// Arguments of the commands whose runs another program requests.
#[derive(Debug, Clone, Default, Args)]
pub struct ClientArgs {
    /// Options shared with `run`; they apply to each run.
    #[command(flatten)]
    pub options: RunOptions,
    /// Maximum cost of all runs together; `--budget` limits each
    #[arg(long, value_name = "USD", value_parser = parse_usd, help_heading = LIMITS, hide_short_help = true)]
    pub budget_total: Option<f64>,
}

impl ClientArgs {
    /// Returns the request of each run.
    ///
    /// # Errors
    /// Fails for those that are about the output of one run, and for an invalid budget.
    pub fn request(&self) -> AppResult<RunRequest> {
        let Self { budget_total, options } = self;
        check_options(options)?;
        let total = budget_total.map(parse_total).transpose()?;
        Ok(RunRequest {
            format: OutputFormat::Json,
            prompt_is_data: true,
            total_budget: total.map(total_budget).map(Rc::new),
            ..options.request()
        })
    }
}

/// Parses the amount of `--budget-total`.
///
/// # Errors
/// For an amount that is not valid.
pub fn parse_total(dollars: f64) -> AppResult<Usd> {
    Usd::try_from(dollars)
        .map_err(|error| AppError::new(FailureKind::Usage, format!("--budget-total: {error}")))
}

fn total_budget(usd: Usd) -> TotalBudget {
    TotalBudget::new(BudgetCap { usd: Some(usd), tokens: None })
}

/// Checks that all options can be honoured for a client, which gets the results.
///
/// # Errors
/// Fails for those that are about the output of one run.
fn check_options(options: &RunOptions) -> AppResult<()> {
    let given = [
        ("--report", options.report.is_some()),
        ("--report-file", options.report_file.is_some()),
        ("--exit-code-on-partial", options.exit_code_on_partial.is_some()),
        ("--image", !options.image.is_empty()),
        ("--output-format", options.output_format.is_some()),
        ("--show-costs", options.show_costs),
        ("--cache-clear", options.cache_clear),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let message = format!(
                "{flag} is for one run at the command line, not for runs that another program requests"
            );
            Err(AppError::new(FailureKind::Usage, message))
        }
    }
}
