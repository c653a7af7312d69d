//! The person at the terminal, whom the tool `ask_user` asks.

use agent_messages as messages;
use agent_terminal::{Style, Terminal, one_line};
use agent_tools::Tool;
use agent_tools::ask_user::{AskUser, Person, UserQuestion};
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Characters shown of a question and of a choice.
const SHOWN_CHARS: usize = 500;

/// The user at the terminal, one question at a time.
struct TerminalPerson {
    terminal: Arc<Terminal>,
    interrupt: CancellationToken,
    turn: Mutex<()>,
}

/// Returns the tool that asks at `terminal`, if a person can answer there, until `interrupt`.
pub fn tool(terminal: &Arc<Terminal>, interrupt: &CancellationToken) -> Option<Box<dyn Tool>> {
    terminal.can_ask().then(|| {
        let (terminal, interrupt) = (Arc::clone(terminal), interrupt.clone());
        Box::new(AskUser(Rc::new(TerminalPerson { terminal, interrupt, turn: Mutex::default() })))
            as Box<dyn Tool>
    })
}

impl Person for TerminalPerson {
    fn answer<'a>(&'a self, question: &'a UserQuestion) -> LocalBoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            self.terminal.eprintln(Style::Bold, &one_line(&question.question, SHOWN_CHARS)).ok()?;
            let prompt = messages::ASK_USER_PROMPT;
            let answer = self.terminal.ask_choice(prompt, &question.choices, &self.interrupt).await?;
            let answer = answer.trim();
            (!answer.is_empty()).then(|| answer.to_owned())
        })
    }
}
