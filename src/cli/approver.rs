//! Questions of the engine, put to the person at the terminal.

use crate::engine::approve::{Answer, Approver, Question};
use crate::language::Language;
use crate::terminal::{self, Terminal};
use futures_util::future::LocalBoxFuture;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Asks at the terminal, one question at a time.
pub struct AtTerminal {
    terminal: Arc<Terminal>,
    interrupt: CancellationToken,
    language: Language,
    turn: Mutex<()>,
}

impl AtTerminal {
    /// An approver that asks in `language` and gives up when `interrupt` fires.
    pub fn new(terminal: Arc<Terminal>, interrupt: CancellationToken, language: Language) -> Self {
        Self { terminal, interrupt, language, turn: Mutex::new(()) }
    }
}

impl Approver for AtTerminal {
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Answer> {
        Box::pin(async move {
            if !self.terminal.can_ask() {
                return Answer::Nobody;
            }
            let _turn = self.turn.lock().await;
            let title = format!("{} {}", question.tool, question.summary);
            let shown = terminal::Question {
                language: self.language,
                title: &title,
                reason: &question.reason,
                notes: &question.notes,
                preview: question.preview.as_deref(),
                lasting: Some(&question.lasting),
            };
            match self.terminal.ask(&shown, &self.interrupt).await {
                terminal::Answer::Yes => Answer::Yes,
                terminal::Answer::Always => Answer::Always,
                terminal::Answer::No(reason) => Answer::No(reason),
                terminal::Answer::Abort => Answer::Abort,
            }
        })
    }
}
