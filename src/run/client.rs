//! A program that drives runs instead of a user at the terminal: it receives the events, answers questions and interrupts.

use crate::input_images::InputImages;
use agent_config::settings::{OfferedTools, Settings};
use agent_core::event::Record;
use agent_core::event_sink::EventSink;
use agent_core::price::Usd;
use agent_engine::approver::{Approver, ApproverAnswer, Question};
use agent_engine::hooks::ClientHooks;
use agent_engine::policy::Mode;
use agent_engine::rules::PolicyRule;
use agent_mcp::hosted::HostedServer;
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The client of a run.
#[derive(Clone)]
pub struct RunClient {
    /// Receives each event.
    pub listener: Rc<dyn Fn(&Record)>,
    /// Receives the questions of the run; they get no answer if its receiver is dropped.
    pub questions: mpsc::UnboundedSender<ClientQuestion>,
    /// Receives the files that a call is about to change; absent if the client is no editor.
    pub unsaved: Option<mpsc::UnboundedSender<UnsavedQuestion>>,
    /// Interrupts the run.
    pub interrupt: CancellationToken,
    /// Whether answers are streamed, so that the listener and every other sink receive their pieces as they arrive.
    pub takes_deltas: bool,
    /// Images of the prompt.
    pub images: InputImages,
    /// Its hooks.
    pub hooks: Option<Rc<dyn ClientHooks>>,
    /// Its MCP servers that live in it.
    pub servers: Vec<HostedServer>,
}

impl RunClient {
    /// Creates a client that cancels its run with `interrupt`, hears no event and answers questions. The questions arrive at the receiver, and the
    /// run waits for each answer: receive them while the run works (`tokio::select!`), or drop the receiver, so that calls that need an answer
    /// are refused.
    pub fn new(interrupt: CancellationToken) -> (Self, mpsc::UnboundedReceiver<ClientQuestion>) {
        let (questions, asked) = mpsc::unbounded_channel();
        let client = Self {
            listener: Rc::new(|_| ()),
            questions,
            unsaved: None,
            interrupt,
            takes_deltas: false,
            images: InputImages::default(),
            hooks: None,
            servers: Vec::new(),
        };
        (client, asked)
    }
}

impl std::fmt::Debug for RunClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunClient").finish_non_exhaustive()
    }
}

/// A question to the client.
#[derive(Debug)]
pub struct ClientQuestion {
    /// The question.
    pub question: Question,
    /// Takes the answer; dropped without one, the call is refused.
    pub reply: oneshot::Sender<ApproverAnswer>,
}

/// A question whether a file has unsaved changes in the client.
#[derive(Debug)]
pub struct UnsavedQuestion {
    /// Path of the file from the workspace root.
    pub path: String,
    /// Takes the answer.
    pub reply: oneshot::Sender<bool>,
}

/// Bounds of a run, besides those of the settings: limits only lower those, and rules take effect where no configured one does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bound of its own")]
pub struct RunBounds {
    /// Maximum cost.
    pub budget: Option<Usd>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
    /// Maximum number of steps.
    pub max_steps: Option<u32>,
    /// Maximum time.
    pub timeout: Option<Duration>,
    /// The most permissive mode.
    pub mode: Option<Mode>,
    /// Whether the run may change no file of the workspace.
    pub read_only: bool,
    /// Whether no fallback model takes over.
    pub no_fallback: bool,
    /// Whether commands may reach no host.
    pub no_network: bool,
    /// Whether `web_search` is off.
    pub no_web_search: bool,
    /// Whether no tool of the run reaches the network: neither `web_fetch` and `web_search` nor MCP servers on other machines.
    pub offline_tools: bool,
    /// The tools that are left.
    pub tools: OfferedTools,
    /// Rules besides the configured ones.
    pub rules: ClientRules,
    /// Paths that commands cannot see, besides those of the settings.
    pub hidden: Vec<PathBuf>,
    /// The configured MCP servers that are used; absent: all.
    pub servers: Option<Vec<String>>,
}

impl RunBounds {
    /// Lowers the limits in `settings` to these bounds.
    pub fn apply(&self, settings: &mut Settings) {
        if let Some(budget) = self.budget.map(f64::from) {
            let own = &mut settings.costs.budget_usd;
            *own = Some(own.map_or(budget, |own| own.min(budget)));
        }
        if let Some(tokens) = self.tokens {
            let own = &mut settings.costs.max_tokens;
            *own = Some(own.map_or(tokens, |own| own.min(tokens)));
        }
        if let Some(steps) = self.max_steps {
            settings.agent.max_steps = settings.agent.max_steps.min(steps);
        }
        if let Some(timeout) = self.timeout {
            settings.timeout = Some(settings.timeout.map_or(timeout, |own| own.min(timeout)));
        }
        if let Some(mode) = self.mode {
            settings.agent.mode = settings.agent.mode.min(mode);
            settings.policy.mode = settings.policy.mode.min(mode);
        }
        if self.read_only {
            settings.client_limits.read_only = true;
            settings.sandbox.writable.clear();
        }
        if self.no_fallback {
            settings.llm.fallback.clear();
        }
        if self.no_network {
            settings.sandbox.network = false;
            settings.sandbox.allowed_hosts.clear();
        }
        settings.sandbox.hidden.extend(self.hidden.iter().map(|path| path.to_string_lossy().into_owned()));
        settings.client_limits.tools = self.tools.clone();
        self.rules.apply(settings);
        if let Some(servers) = &self.servers {
            settings.mcp.servers.retain(|name, _| servers.contains(name));
        }
        if self.no_web_search || self.offline_tools {
            settings.web.search.provider = None;
        }
        if self.offline_tools {
            settings.web.enabled = false;
            settings.mcp.servers.retain(|_, server| server.url.is_none());
        }
    }
}

/// Rules of a client on calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ClientRules {
    /// Refusals, which precede the configured rules.
    pub refusals: Vec<PolicyRule>,
    /// Allowances, which follow the configured rules; without effect where every call needs approval.
    pub allowances: Vec<PolicyRule>,
    /// Regular expressions of commands.
    pub blocked_commands: Vec<String>,
    /// Patterns of files that are not changed.
    pub protected_files: Vec<String>,
}

impl ClientRules {
    fn apply(&self, settings: &mut Settings) {
        let policy = &mut settings.policy;
        policy.rules.splice(0..0, self.refusals.iter().cloned());
        if policy.mode != Mode::ConfirmAll {
            policy.rules.extend(self.allowances.iter().cloned());
        }
        policy.blocked_commands.extend(self.blocked_commands.iter().cloned());
        policy.protected_files.extend(self.protected_files.iter().cloned());
    }
}

/// Asks the client.
pub struct ClientApprover {
    questions: mpsc::UnboundedSender<ClientQuestion>,
    unsaved: Option<mpsc::UnboundedSender<UnsavedQuestion>>,
}

impl ClientApprover {
    /// Creates the approver that asks `client`.
    pub fn new(client: &RunClient) -> Self {
        Self { questions: client.questions.clone(), unsaved: client.unsaved.clone() }
    }
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let question = ClientQuestion { question: question.clone(), reply };
            match self.questions.send(question) {
                Ok(()) => answer.await.unwrap_or(ApproverAnswer::NoApprover),
                Err(_) => ApproverAnswer::NoApprover,
            }
        })
    }

    fn unsaved_file<'a>(&'a self, paths: &'a [&'a str]) -> LocalBoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let editor = self.unsaved.as_ref()?;
            for path in paths {
                let (reply, answer) = oneshot::channel();
                // A client that has left interrupts the run, and edits no file any more.
                let _sent = editor.send(UnsavedQuestion { path: (*path).to_owned(), reply });
                if answer.await.unwrap_or(false) {
                    return Some((*path).to_owned());
                }
            }
            None
        })
    }
}

/// Passes events on to the client.
pub struct ClientSink(Rc<dyn Fn(&Record)>);

impl ClientSink {
    /// Creates the sink of a client.
    pub fn boxed(client: &RunClient) -> Box<dyn EventSink> {
        Box::new(Self(Rc::clone(&client.listener)))
    }
}

impl EventSink for ClientSink {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        (self.0)(record);
        Ok(())
    }
}
