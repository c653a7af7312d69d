//! The `dispatch_subagent` tool: runs an agent on a task and returns its answer.

use super::host::{SubagentContext, SubagentHost, SubagentRequest};
use crate::session::RunEnd;
use agent_core::language::Language;
use agent_core::stop_reason::Status;
use agent_messages as messages;
use agent_text::lines::{QUOTE_CHARS, one_line};
use agent_tools::arguments::{self, nearest};
use agent_tools::rewrite::Rewrite;
use agent_tools::toolbox::DISPATCH_SUBAGENT;
use agent_tools::{Access, Plan, Tool, ToolContext, ToolOutput};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fmt::Write as _;
use std::rc::Rc;

/// Characters of an answer that the model receives; longer answers are stored.
const MAX_ANSWER_CHARS: usize = 1000;

/// Number of files that a task may list.
const MAX_FILES: usize = 10;

/// The agent used when the call names none.
const DEFAULT_KIND: &str = "explore";

/// An agent that can run as a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentType {
    /// Name of the agent.
    pub name: String,
    /// Purpose of the agent, one line.
    pub description: String,
}

/// The conversation that a subagent starts with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Context {
    #[default]
    Clean,
    Fork,
}

/// Arguments of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What to do or find out, and what the answer must contain.
    task: String,
    /// Name of the agent.
    #[serde(default)]
    agent_type: Option<String>,
    /// Paths to read first.
    #[serde(default)]
    relevant_files: Vec<String>,
    /// `clean`: starts with the task only. `fork`: starts with this conversation and its tokens.
    #[serde(default)]
    context: Context,
}

/// The `dispatch_subagent` tool. Its host is set when the run is assembled.
pub struct DispatchSubagent {
    kinds: Vec<SubagentType>,
    description: String,
    host: Rc<OnceCell<SubagentHost>>,
}

impl DispatchSubagent {
    /// Creates the tool for the agents `kinds`. Returns `None` when there are no agents.
    pub fn new(kinds: Vec<SubagentType>, host: Rc<OnceCell<SubagentHost>>) -> Option<Self> {
        if kinds.is_empty() {
            return None;
        }
        let mut description = "Run another agent on a part of the work; returns up to 1000 characters of its answer. \
            It shares your budget. Useful for large searches; several calls in one answer run in parallel. Agents:"
            .to_owned();
        for kind in &kinds {
            let _ = write!(description, "\n- {}: {}", kind.name, kind.description);
        }
        Some(Self { kinds, description, host })
    }

    fn parse(&self, args: &Value) -> Result<(Args, &SubagentType), String> {
        let args: Args = arguments::parse(DISPATCH_SUBAGENT, args)?;
        if args.task.trim().is_empty() {
            return Err("Invalid arguments: `task` is empty: describe what the subagent must do.".to_owned());
        }
        let name = args.agent_type.as_deref().unwrap_or(DEFAULT_KIND);
        let names = || self.kinds.iter().map(|kind| kind.name.as_str());
        let Some(kind) = self.kinds.iter().find(|kind| kind.name == name) else {
            let hint =
                nearest(name, names()).map_or_else(String::new, |near| format!(" Did you mean {near}?"));
            let known: Vec<&str> = names().collect();
            let shown = one_line(name, QUOTE_CHARS);
            return Err(format!(
                "Invalid arguments: there is no agent_type '{shown}'.{hint} Available agents: {}.",
                known.join(", ")
            ));
        };
        Ok((args, kind))
    }

    async fn ask(&self, args: &Value, cx: &ToolContext) -> ToolOutput {
        let output = match self.parse(args) {
            Ok((args, kind)) => self.dispatch(&args, kind, cx).await,
            Err(problem) => Err(problem),
        };
        output.unwrap_or_else(ToolOutput::error)
    }

    async fn dispatch(
        &self,
        args: &Args,
        kind: &SubagentType,
        cx: &ToolContext,
    ) -> Result<ToolOutput, String> {
        let host = self.host.get().ok_or("Subagents are available only during a run.")?;
        host.count()?;
        let memory = match args.context {
            Context::Clean => SubagentContext::Clean,
            Context::Fork => SubagentContext::Fork,
        };
        let task = task(args);
        let ask = SubagentRequest {
            agent: &kind.name,
            task: &task,
            memory,
            call_id: &cx.call_id,
            read_only: false,
            model: None,
            stream: true,
        };
        // Boxed because the future of a whole run is large.
        let outcome = Box::pin(host.ask(ask, &cx.cancel)).await?;
        Ok(answer(&outcome, cx))
    }
}

impl Tool for DispatchSubagent {
    fn name(&self) -> &str {
        DISPATCH_SUBAGENT
    }

    /// Starting a subagent only reads the workspace. Each call of the subagent is decided separately.
    fn access(&self) -> Access {
        Access::Read
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Value {
        let mut schema = arguments::model_schema::<Args>();
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
        if let Some(kind) = schema.pointer_mut("/properties/agent_type").and_then(Value::as_object_mut) {
            kind.insert("enum".to_owned(), json!(names));
        }
        schema
    }

    fn plan(&self, args: &Value) -> Result<Plan, String> {
        let (args, kind) = self.parse(args)?;
        let summary = one_line(&format!("{}: {}", kind.name, args.task), QUOTE_CHARS);
        Ok(Plan { summary, ..Plan::default() })
    }

    fn rewrites(&self, _args: &Value, _cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        Ok(Vec::new())
    }

    fn preview(&self, args: &Value, _cx: &ToolContext) -> Result<Option<String>, String> {
        self.parse(args).map(|(args, _)| Some(task(&args)))
    }

    fn call<'a>(&'a self, args: &'a Value, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        Box::pin(self.ask(args, cx))
    }
}

/// Returns the task, followed by the list of its files.
fn task(args: &Args) -> String {
    let files: Vec<&str> = args.relevant_files.iter().take(MAX_FILES).map(String::as_str).collect();
    if files.is_empty() {
        return args.task.clone();
    }
    format!("{}\n\nLook at these files first:\n- {}", args.task, files.join("\n- "))
}

/// Converts the outcome of a subagent to the result for the model.
fn answer(outcome: &RunEnd, cx: &ToolContext) -> ToolOutput {
    let text = outcome.output.text();
    match outcome.status {
        Status::Success => ToolOutput::ok(cut(&text, cx)),
        Status::Partial => {
            let reason = messages::stop_reason_text(outcome.reason, outcome.limit, Language::En);
            ToolOutput::ok(format!("[The subagent did not finish: {reason}.]\n{}", cut(&text, cx)))
        }
        Status::Failed => {
            let reason = outcome.error.as_ref().map_or(outcome.reason.name(), |error| error.message.as_str());
            ToolOutput::error(format!("The subagent failed: {reason}"))
        }
    }
}

/// Shortens an answer to the limit and stores the whole text of a longer one.
fn cut(text: &str, cx: &ToolContext) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_ANSWER_CHARS) else { return text.to_owned() };
    let shown = text.get(..end).unwrap_or(text);
    match cx.outputs.store(&cx.call_id, text.as_bytes()) {
        Ok(name) => format!("{shown}... (summary truncated: the whole answer is {name})"),
        Err(_) => format!("{shown}... (summary truncated)"),
    }
}
