//! Selects the approver of a run: the user at the terminal, the client program, or none.

use crate::app::App;
use crate::client::{ClientApprover, RunClient};
use crate::memory::CorrectionStore;
use crate::rule_store::RuleStore;
use agent_config::settings::Settings;
use agent_core::language::Language;
use agent_engine::approver::{Approver, ApproverAnswer, NoApprover, NonInteractiveApprover, Question};
use agent_engine::grants::Grants;
use agent_engine::message_queue::MessageQueue;
use agent_journal::approvals::Approvals;
use agent_messages as messages;
use agent_terminal::{self as terminal, Style, Terminal, one_line};
use agent_tools::foreground::ForegroundCommands;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Maximum characters of a notice about a stored correction.
const NOTICE_CHARS: usize = 400;

/// How the engine of a run interacts with the user.
pub struct InteractionOptions {
    /// Cancels the prompts for approval at the terminal; `None` if no user can be asked there.
    pub ask_until: Option<CancellationToken>,
    /// The program that answers instead of a user at the terminal.
    pub client: Option<RunClient>,
    /// What happens to a call when no user can approve it.
    pub no_approver: NoApprover,
    /// The approvals that were requested and answered between runs.
    pub approvals: Approvals,
    /// Whether only read-only calls run and all others are described.
    pub dry_run: bool,
    /// Messages that the user types while the run works.
    pub queue: MessageQueue,
    /// What the user has allowed for the whole conversation.
    pub grants: Rc<Grants>,
    /// Commands that the user follows while calls wait for them.
    pub foreground: ForegroundCommands,
}

impl InteractionOptions {
    /// Creates the options for a single call outside a session, which cannot wait for an approval.
    pub fn for_single_call(ask_until: Option<CancellationToken>) -> Self {
        Self {
            ask_until,
            client: None,
            no_approver: NoApprover::Refuse,
            approvals: Approvals::default(),
            dry_run: false,
            queue: MessageQueue::default(),
            grants: Rc::default(),
            foreground: ForegroundCommands::default(),
        }
    }

    /// Returns the approver of a run.
    pub fn approver(&self, app: &App, settings: &Settings) -> Rc<dyn Approver> {
        match (&self.client, &self.ask_until) {
            (Some(client), _) => Rc::new(ClientApprover::new(client)),
            (None, Some(token)) => {
                let corrections = CorrectionStore::new(settings, app.redactor(settings), &app.source);
                let terminal = Arc::clone(&app.terminal);
                Rc::new(TerminalApprover {
                    terminal,
                    interrupt: token.clone(),
                    language: settings.language,
                    turn: Mutex::new(()),
                    corrections,
                    rules: RuleStore::new(app, settings),
                })
            }
            (None, None) => Rc::new(NonInteractiveApprover),
        }
    }
}

/// Asks at the terminal, one question at a time.
struct TerminalApprover {
    terminal: Arc<Terminal>,
    interrupt: CancellationToken,
    language: Language,
    turn: Mutex<()>,
    /// Stores corrections in reasons of refusals; absent: without memory.
    corrections: Option<CorrectionStore>,
    /// Stores the rules that the user approves for good.
    rules: RuleStore,
}

impl TerminalApprover {
    /// Stores the corrections in the reason of a refusal and shows them.
    fn store_corrections(&self, reason: &str) {
        for notice in self.corrections.iter().flat_map(|store| store.store(reason)) {
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
            let saved = self.rules.offer(question);
            let title = messages::call_question(&question.tool, &question.summary, self.language);
            let shown = terminal::PromptQuestion {
                language: self.language,
                title: &title,
                reason: &question.reason,
                notes: &question.notes,
                preview: question.preview.as_deref(),
                lasting: Some(&question.always_scope),
                saved: saved.as_deref(),
            };
            match self.terminal.ask(&shown, &self.interrupt).await {
                terminal::PromptAnswer::Yes => ApproverAnswer::Yes,
                terminal::PromptAnswer::Always => ApproverAnswer::Always,
                terminal::PromptAnswer::Save => {
                    let (style, line) = self.rules.save(question);
                    let _shown = self.terminal.eprintln(style, &line);
                    ApproverAnswer::Always
                }
                terminal::PromptAnswer::No(reason) => {
                    if let Some(reason) = &reason {
                        self.store_corrections(reason);
                    }
                    ApproverAnswer::No(reason)
                }
                terminal::PromptAnswer::Abort => ApproverAnswer::Abort,
            }
        })
    }
}
