//! Approver that asks the user at the terminal.

use crate::cli::compose::memory::CorrectionStore;
use crate::core::language::Language;
use crate::engine::approver::{Approver, ApproverAnswer, Question};
use crate::terminal::{self, Style, Terminal, one_line};
use futures_util::future::LocalBoxFuture;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Maximum characters of a notice about a stored correction.
const NOTICE_CHARS: usize = 400;

/// Asks at the terminal, one question at a time.
pub struct TerminalApprover {
    terminal: Arc<Terminal>,
    interrupt: CancellationToken,
    language: Language,
    turn: Mutex<()>,
    /// Stores corrections in reasons of refusals; absent: without memory.
    corrections: Option<CorrectionStore>,
}

impl TerminalApprover {
    /// Creates an approver that asks in `language` and stops waiting when `interrupt` fires.
    pub fn new(
        terminal: Arc<Terminal>,
        interrupt: CancellationToken,
        language: Language,
        corrections: Option<CorrectionStore>,
    ) -> Self {
        Self { terminal, interrupt, language, turn: Mutex::new(()), corrections }
    }

    /// Stores the correction in the reason of a refusal and shows it.
    fn store_correction(&self, reason: &str) {
        if let Some(notice) = self.corrections.as_ref().and_then(|store| store.store(reason)) {
            // The answer counts, whether the notice is seen or not.
            let _shown = self.terminal.eprintln(Style::Dim, &one_line(&notice, NOTICE_CHARS));
        }
    }
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer> {
        Box::pin(async move {
            if !self.terminal.can_ask() {
                return ApproverAnswer::NoApprover;
            }
            let _turn = self.turn.lock().await;
            let title = format!("{} {}", question.tool, question.summary);
            let shown = terminal::PromptQuestion {
                language: self.language,
                title: &title,
                reason: &question.reason,
                notes: &question.notes,
                preview: question.preview.as_deref(),
                lasting: Some(&question.always_scope),
            };
            match self.terminal.ask(&shown, &self.interrupt).await {
                terminal::PromptAnswer::Yes => ApproverAnswer::Yes,
                terminal::PromptAnswer::Always => ApproverAnswer::Always,
                terminal::PromptAnswer::No(reason) => {
                    if let Some(reason) = &reason {
                        self.store_correction(reason);
                    }
                    ApproverAnswer::No(reason)
                }
                terminal::PromptAnswer::Abort => ApproverAnswer::Abort,
            }
        })
    }
}
