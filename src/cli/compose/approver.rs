//! Approver that asks the user at the terminal.

use crate::core::language::Language;
use crate::engine::approver::{Approver, ApproverAnswer, Question};
use crate::terminal::{self, Terminal};
use futures_util::future::LocalBoxFuture;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Asks at the terminal, one question at a time.
pub struct TerminalApprover {
    terminal: Arc<Terminal>,
    interrupt: CancellationToken,
    language: Language,
    turn: Mutex<()>,
}

impl TerminalApprover {
    /// Creates an approver that asks in `language` and stops waiting when `interrupt` fires.
    pub fn new(terminal: Arc<Terminal>, interrupt: CancellationToken, language: Language) -> Self {
        Self { terminal, interrupt, language, turn: Mutex::new(()) }
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
                terminal::PromptAnswer::No(reason) => ApproverAnswer::No(reason),
                terminal::PromptAnswer::Abort => ApproverAnswer::Abort,
            }
        })
    }
}
