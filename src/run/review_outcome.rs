//! Result of `agent review`: how it is shown, and its exit code.

use crate::app::App;
use crate::exit_code::ExitCode;
use agent_config::settings::Settings;
use agent_core::review::{FindingSeverity, Review};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use agent_messages as messages;
use agent_report as report;
use agent_report::OutputFormat;
use agent_report::answer::AnswerShown;
use agent_report::review_text::review_text;
use agent_terminal::{PrintOutcome, Style};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

/// How the result of a review is shown, and which exit code it has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReviewOutcome {
    /// The lowest severity that fails the review; `None` if no finding does.
    pub fail_on: Option<FindingSeverity>,
    /// The changed files, as paths from the workspace root.
    pub changed: BTreeSet<String>,
    /// Whether the model was shown all changes that are text and not sensitive.
    pub is_diff_complete: bool,
}

impl ReviewOutcome {
    /// Returns the exit code of a review whose run has the exit code `code`, and reports why it fails. Without a complete review it is
    /// never 0.
    pub fn exit_code(&self, app: &App, settings: &Settings, result: &RunResult, code: u8) -> u8 {
        let language = settings.language;
        let Some(review) = Review::from_result(result) else {
            app.notify(Style::Warning, messages::review_incomplete(language));
            return if code == 0 { ExitCode::Failed.code() } else { code };
        };
        let Some(limit) = self.fail_on.filter(|_| code == 0) else { return code };
        let reason = if review.highest_severity().is_some_and(|severity| severity >= limit) {
            messages::findings_reach(limit, language)
        } else if self.is_diff_complete {
            return code;
        } else {
            messages::incomplete_diff_fails(limit, language)
        };
        app.notify(Style::Warning, &reason);
        ExitCode::Partial.code()
    }

    /// Writes the findings to standard output as text; an output that is not a review as in other runs.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn write(&self, app: &App, settings: &Settings, result: &RunResult) -> io::Result<PrintOutcome> {
        let review = Review::from_result(result).filter(|_| result.status != Status::Failed);
        let Some(review) = review else {
            return report::write_result(&app.terminal, OutputFormat::Text, result, &AnswerShown::default());
        };
        app.terminal.print(&review_text(&review, &settings.workspace, &self.changed, settings.language))
    }
}
