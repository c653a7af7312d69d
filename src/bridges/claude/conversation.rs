//! The conversation with a client: each message of the user is a run on one session.

use super::args::{ClaudeArgs, PermissionMode};
use super::hooks::{Callbacks, Registered};
use super::input::Prompt;
use super::options::Setup;
use super::outbox::Outbox;
use super::questions::Questioner;
use super::servers::ClientServers;
use super::session::{open_session, task};
use agent_config::environment::Environment;
use agent_config::overrides::Overrides;
use agent_core::event::{Event, Record};
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_report::claude::{ClaudeEvents, InitInfo, informational};
use agent_run::client::{RunBounds, RunClient};
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::exit_code;
use agent_run::input_images::InputImages;
use agent_run::perform::run_for_client;
use agent_run::request::{AnswerSchema, RunRequest};
use agent_run::session::use_state_with;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Variable whose key the client's `apiKeySource` means.
const KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";
/// The agent of the mode `plan`.
const PLAN_AGENT: &str = "plan";

/// A conversation.
pub struct Conversation {
    /// What is the same for all messages.
    pub setup: Setup,
    /// The way to the client.
    pub outbox: Rc<Outbox>,
    /// The MCP servers in the client.
    pub servers: ClientServers,
    /// What the client has chosen for the next messages.
    pub choices: RefCell<Choices>,
    /// The result of the last message.
    pub last: RefCell<Option<RunResult>>,
    /// The exit code for the last message.
    pub code: Cell<u8>,
    takes_pieces: bool,
    id: String,
    events: Rc<RefCell<ClaudeEvents>>,
    /// Warnings that the client has not got.
    warnings: Rc<RefCell<Vec<String>>>,
    interrupt: RefCell<Option<CancellationToken>>,
    /// What the messages may have cost.
    spent: Cell<Usd>,
}

/// What a client can change.
pub struct Choices {
    /// The model; `None`: as configured.
    pub model: Option<String>,
    /// The schema of the answer.
    pub schema: Option<AnswerSchema>,
    /// Hooks.
    pub hooks: Rc<Registered>,
    /// The bounds of the runs.
    pub bounds: RunBounds,
}

impl Conversation {
    /// Opens the session of the command line.
    ///
    /// # Errors
    /// When there is no such session, or it cannot be read or copied.
    pub fn open(mut setup: Setup, args: &ClaudeArgs, outbox: &Rc<Outbox>) -> AppResult<Self> {
        use_state_with(&mut setup.settings, args.resume.as_deref());
        let id = open_session(&setup, args)?;
        outbox.session_id.borrow_mut().clone_from(&id);
        let choices = Choices {
            model: setup.request.overrides.model.clone(),
            schema: setup.request.schema.clone(),
            hooks: Rc::default(),
            bounds: setup.request.bounds.clone(),
        };
        Ok(Self {
            warnings: Rc::new(RefCell::new(std::mem::take(&mut setup.warnings))),
            outbox: Rc::clone(outbox),
            servers: ClientServers::default(),
            choices: RefCell::new(choices),
            last: RefCell::default(),
            code: Cell::new(0),
            takes_pieces: args.include_partial_messages,
            id,
            events: Rc::new(RefCell::new(ClaudeEvents::new(args.include_partial_messages))),
            interrupt: RefCell::default(),
            spent: Cell::new(Usd::ZERO),
            setup,
        })
    }

    /// Interrupts the run.
    pub fn interrupt(&self) {
        if let Some(interrupt) = &*self.interrupt.borrow() {
            interrupt.cancel();
        }
    }

    /// Adds a warning, which the client gets with the next run.
    pub fn warn(&self, text: String) {
        self.warnings.borrow_mut().push(text);
    }

    /// Takes the warnings that the client has not got.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take().iter().map(|text| self.setup.app.redact(text)).collect()
    }

    /// Runs a message and sends its result; `ended` interrupts it.
    pub async fn run(&self, prompt: Prompt, ended: CancellationToken) {
        let interrupt = ended.child_token();
        self.interrupt.replace(Some(interrupt.clone()));
        let done = self.turn(prompt, interrupt).await;
        self.interrupt.take();
        match done {
            Ok(result) => self.finish(result),
            Err(error) => self.fail(&error),
        }
    }

    /// Sends the result for a message that cannot be run.
    pub fn fail(&self, error: &AppError) {
        self.setup.app.report_error(error);
        self.finish(self.setup.app.not_started(error));
        self.code.set(error.exit_code().code());
    }

    fn finish(&self, result: RunResult) {
        self.take_warnings().iter().for_each(|text| self.outbox.message(informational(text)));
        self.outbox.message(self.events.borrow_mut().result(&result, self.setup.settings.language));
        self.code.set(exit_code(&result, None));
        self.last.replace(Some(result));
    }

    async fn turn(&self, mut prompt: Prompt, interrupt: CancellationToken) -> AppResult<RunResult> {
        self.events.borrow_mut().begin(self.init_info());
        let questioner = Questioner {
            outbox: Rc::clone(&self.outbox),
            permissions: Rc::clone(&self.setup.permissions),
            events: Rc::clone(&self.events),
            root: self.setup.settings.workspace.clone(),
        };
        let hooks = Rc::clone(&self.choices.borrow().hooks);
        let callbacks = Rc::new(Callbacks {
            hooks,
            questioner: questioner.clone(),
            clock: Rc::clone(&self.setup.app.source),
        });
        let context = tokio::select! {
            biased;
            () = interrupt.cancelled() => Err("the run was interrupted".to_owned()),
            context = callbacks.prompt(&prompt.text) => context,
        };
        let context = context.map_err(|why| AppError::new(FailureKind::Usage, why))?;
        for text in &context {
            prompt.text.extend(["\n\n", text.as_str()]);
        }

        let (client, mut asked) = RunClient::new(interrupt);
        let (hosted, hosted_messages) = mpsc::unbounded_channel();
        let client = RunClient {
            listener: self.listener(),
            takes_deltas: self.takes_pieces,
            images: client_images(prompt.images)?,
            hooks: Some(callbacks),
            servers: self.servers.for_run(&hosted),
            ..client
        };
        let request = self.run_request(client, prompt.text);
        let answers = async {
            while let Some(question) = asked.recv().await {
                questioner.answer(question).await;
            }
            std::future::pending::<Infallible>().await
        };
        let finished = tokio::select! {
            finished = run_for_client(&self.setup.app, &request) => finished?,
            never = self.servers.pass_on(&self.outbox, hosted_messages) => match never {},
            never = answers => match never {},
        };
        self.spent.set(self.spent.get() + finished.outcome.spent);
        Ok(finished.outcome.result)
    }

    /// Returns what receives the events of a run.
    fn listener(&self) -> Rc<dyn Fn(&Record)> {
        let (outbox, events, warnings) =
            (Rc::clone(&self.outbox), Rc::clone(&self.events), Rc::clone(&self.warnings));
        let redact = self.setup.app.redact_fn();
        Rc::new(move |record| {
            events.borrow_mut().messages(record).into_iter().for_each(|message| outbox.message(message));
            if let Event::RunStart { .. } = &record.event {
                warnings.take().iter().for_each(|text| outbox.message(informational(&redact(text))));
            }
        })
    }

    fn init_info(&self) -> InitInfo {
        let Setup { settings, app, permissions, .. } = &self.setup;
        let configured = settings.mcp.enabled().map(|(name, _)| name.clone());
        let is_used = |name: &String| {
            self.setup.request.bounds.servers.as_ref().is_none_or(|servers| servers.contains(name))
        };
        InitInfo {
            cwd: settings.workspace.clone(),
            permission_mode: permissions.mode().name().to_owned(),
            servers: configured.filter(is_used).chain(self.servers.names()).collect(),
            has_key: has_variable(&app.environment, KEY_VARIABLE),
        }
    }

    fn run_request(&self, client: RunClient, prompt: String) -> RunRequest {
        let choices = self.choices.borrow();
        let is_plan = self.setup.permissions.mode() == PermissionMode::Plan;
        let agent = if is_plan { PLAN_AGENT } else { &self.setup.settings.agent.name };
        let budget = choices.bounds.budget.map(|budget| budget.saturating_sub(self.spent.get()));
        RunRequest {
            overrides: Overrides {
                agent: Some(agent.to_owned()),
                model: choices.model.clone(),
                ..self.setup.request.overrides.clone()
            },
            schema: choices.schema.clone(),
            bounds: RunBounds { budget, read_only: is_plan, ..choices.bounds.clone() },
            client: Some(client),
            session_id: Some(self.id.clone()),
            ..self.setup.request.with_task(task(&self.setup, &self.id, prompt))
        }
    }

    /// Sends the result for a message that the client should not have sent.
    pub fn refuse(&self, why: &str) {
        self.events.borrow_mut().begin(self.init_info());
        self.fail(&AppError::new(FailureKind::Usage, why.to_owned()));
    }
}

fn client_images(images: Vec<Vec<u8>>) -> AppResult<InputImages> {
    let named = images.into_iter().enumerate().map(|(index, bytes)| (format!("image {}", index + 1), bytes));
    InputImages::from_client(named)
}

fn has_variable(environment: &Environment, name: &str) -> bool {
    environment.get(name).is_some_and(|value| !value.is_empty())
}
