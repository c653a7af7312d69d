//! The tool `ask_user`: asks the person who is there one to four questions, each with choices or a free answer.

use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_text::lines::{QUOTE_CHARS, one_line};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;
use std::rc::Rc;

/// Maximum number of questions of a call, and of choices of a question.
const MAX_QUESTIONS: usize = 4;
const MAX_CHOICES: usize = 9;

/// The end of a result without an answer.
pub const NO_ANSWER: &str = "The user gave no answer. Choose the most reasonable one, and say which.";

/// A question to a person.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserQuestion {
    /// One short question.
    pub question: String,
    /// At most 9 answers to choose from; the user may write another one.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// Arguments of `ask_user`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskUserArgs {
    /// One to four questions.
    pub questions: Vec<UserQuestion>,
}

/// The person who is there.
pub trait Person {
    /// Asks the question; `None` if there is no answer.
    fn answer<'a>(&'a self, question: &'a UserQuestion) -> LocalBoxFuture<'a, Option<String>>;
}

/// The `ask_user` tool.
pub struct AskUser(pub Rc<dyn Person>);

impl TypedTool for AskUser {
    const NAME: &'static str = "ask_user";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Ask the user when a decision is the user's and the work cannot go on without it. Do not ask what you can find out.";
    type Args = AskUserArgs;

    fn plan(&self, args: &AskUserArgs) -> Plan {
        let first = args.questions.first().map(|first| first.question.as_str()).unwrap_or_default();
        Plan { summary: one_line(first, QUOTE_CHARS), ..Plan::default() }
    }

    async fn run(&self, args: AskUserArgs, _cx: &ToolContext) -> Result<ToolOutput, String> {
        let questions = &args.questions;
        if !(1..=MAX_QUESTIONS).contains(&questions.len()) {
            return Err(format!("Ask one to {MAX_QUESTIONS} questions."));
        }
        if questions.iter().any(|one| one.choices.len() > MAX_CHOICES || one.question.trim().is_empty()) {
            return Err(format!("Each question has a text and at most {MAX_CHOICES} choices."));
        }
        let mut text = String::new();
        for question in questions {
            let Some(answer) = self.0.answer(question).await else {
                text.push_str(NO_ANSWER);
                break;
            };
            let _infallible =
                writeln!(text, "{}\nAnswer: {answer}", one_line(&question.question, QUOTE_CHARS));
        }
        Ok(ToolOutput::ok(text.trim_end()))
    }
}
