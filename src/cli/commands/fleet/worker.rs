//! `agent worker`: does the tasks of the queue, each in a worktree of its own.

use crate::cli::commands::client_run::ClientArgs;
use crate::cli::commands::fleet::attempt::{Attempt, settle};
use crate::cli::commands::fleet::context::WorkerContext;
use crate::cli::commands::fleet::records::open_queue;
use crate::cli::compose::app::App;
use crate::cli::error::CliResult;
use crate::cli::exit_code::ExitCode;
use crate::core::fleet::{TaskRecord, TaskState};
use crate::fleet::boot_clock::BootTime;
use crate::fleet::error::QueueError;
use crate::messages;
use crate::runtime::interrupt::SignalHandlers;
use crate::terminal::Style;
use clap::Args;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two looks at a queue that has nothing to do.
const IDLE: Duration = Duration::from_millis(500);

/// Arguments of `agent worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Number of tasks at the same time, 1 to 10
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=10))]
    pub jobs: u8,
    /// Do one task, and end
    #[arg(long)]
    pub once: bool,
    /// End when the queue is empty
    #[arg(long, conflicts_with = "once")]
    pub drain: bool,
    /// After SIGTERM or Ctrl+C: time for the tasks under way to end before they are given back
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub grace: u64,
    /// The queue: `sqlite:` and the absolute path of a file
    #[arg(long, value_name = "URL")]
    pub queue: Option<String>,
    /// Options of all runs; a task never exceeds them.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// A worker.
struct Worker<'a> {
    context: WorkerContext<'a>,
    /// Its name in the records.
    name: String,
    /// Numbers of tasks that could not be settled, which was reported.
    not_settled: RefCell<BTreeSet<u64>>,
}

/// Performs tasks until a signal or an option ends it, and returns the exit code.
///
/// # Errors
/// Fails for an invalid configuration, and when the queue cannot be used.
pub fn worker(app: &App, args: WorkerArgs) -> CliResult<u8> {
    let WorkerArgs { jobs, once, drain, grace, queue, client } = args;
    let options = client.into_options()?;
    let settings = app.load_and_notify(&options.flags())?.settings;
    // What is recorded is redacted with the secrets of these settings too.
    app.redactor(&settings);
    let queue = open_queue(app, &settings, queue.as_deref())?;
    let context = WorkerContext {
        app,
        queue: RefCell::new(queue),
        options,
        language: settings.language,
        lease: Duration::from_secs(settings.fleet.lease_seconds.into()),
        stop: CancellationToken::new(),
        git: Mutex::default(),
    };
    let worker = Worker { context, name: worker_name(), not_settled: RefCell::default() };
    let limits = Limits { jobs: usize::from(jobs), once, drain, grace: Duration::from_secs(grace) };
    app.block_on(worker.work(&limits))
}

/// How much a worker does.
struct Limits {
    jobs: usize,
    once: bool,
    drain: bool,
    grace: Duration,
}

impl Worker<'_> {
    async fn work(&self, limits: &Limits) -> CliResult<u8> {
        let interrupt = self.arm_interrupt(limits.grace)?;
        self.settle_all(self.context.now()).await?;
        let mut running = FuturesUnordered::new();
        let mut after_grace = pin!(self.after_grace(&interrupt, limits.grace));
        let (mut claimed, mut all_done, mut failed) = (0_usize, true, None);
        loop {
            let claims = !interrupt.is_cancelled() && failed.is_none() && !(limits.once && claimed > 0);
            while claims && running.len() < limits.jobs && !self.is_used_up() {
                match self.claim() {
                    Ok(Some(task)) => running.push(self.perform(task)),
                    Ok(None) => break,
                    Err(error) => failed = Some(error),
                }
                claimed += 1;
                if limits.once || failed.is_some() {
                    break;
                }
            }
            if running.is_empty() {
                if !claims || self.may_end(limits)? {
                    break;
                }
                // Tasks that ended a moment ago are still settled by their own workers.
                self.settle_all(self.context.now().saturating_sub(self.context.lease.as_secs())).await?;
            }
            tokio::select! {
                Some(ended) = running.next() => match ended {
                    Ok(state) => all_done &= state == Some(TaskState::Done),
                    Err(error) => failed = Some(error),
                },
                () = sleep(IDLE) => {}
                () = &mut after_grace, if !self.context.stop.is_cancelled() => self.context.stop.cancel(),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(if limits.once && !all_done { ExitCode::Partial } else { ExitCode::Success }.code()),
        }
    }

    /// Lets the first signal end the worker after a time of grace, and the second one end it at once.
    fn arm_interrupt(&self, grace: Duration) -> CliResult<CancellationToken> {
        let WorkerContext { app, language, .. } = &self.context;
        let (terminal, text) = (Arc::clone(&app.terminal), messages::worker_ends(grace.as_secs(), *language));
        Ok(app.interrupt()?.arm(SignalHandlers {
            on_first_signal: Box::new(move || drop(terminal.eprintln(Style::Warning, &text))),
            on_second_signal: Box::new(|| ()),
        }))
    }

    /// Ends when a signal has arrived and the time of grace has passed.
    async fn after_grace(&self, interrupt: &CancellationToken, grace: Duration) {
        interrupt.cancelled().await;
        sleep(grace).await;
    }

    /// Checks whether the worker has nothing more to do.
    fn may_end(&self, limits: &Limits) -> CliResult<bool> {
        Ok(limits.once
            || self.is_used_up()
            || limits.drain && !self.context.queue.borrow().has_open_tasks()?)
    }

    /// Checks whether the money or the tokens of all tasks together are used up.
    fn is_used_up(&self) -> bool {
        self.context.options.total_budget.as_ref().is_some_and(|total| total.is_used_up())
    }

    fn claim(&self) -> CliResult<Option<TaskRecord>> {
        let time = BootTime::now();
        let lease = (&time, &time.after(self.context.lease));
        Ok(self.context.queue.borrow_mut().claim(&self.name, lease, self.context.now())?)
    }

    /// Performs the newest attempt of a task; returns the state in which it leaves the task, if that still exists.
    async fn perform(&self, task: TaskRecord) -> CliResult<Option<TaskState>> {
        let text = messages::task_started(&task.id, task.attempt, &task.spec.prompt, self.context.language);
        self.context.log(Style::Bold, &text);
        Box::pin(Attempt::new(&self.context, &task).perform()).await?;
        let task = match self.context.queue.borrow().get(&task.id) {
            Err(QueueError::Unknown(_)) => return Ok(None),
            task => task?,
        };
        let style = if task.state == TaskState::Done { Style::Plain } else { Style::Warning };
        self.context.log(style, &messages::task_ended(&task, self.context.language));
        Ok(Some(task.state))
    }

    /// Creates the branches of tasks whose worker was killed before it could, and removes what such workers have left; of tasks that ended
    /// by `until`, in seconds since the Unix epoch.
    async fn settle_all(&self, until: u64) -> CliResult<()> {
        let tasks = self.context.queue.borrow().unsettled(&BootTime::now(), until)?;
        for task in tasks {
            if self.not_settled.borrow().contains(&task.number) {
                continue;
            }
            if let Err(error) = settle(&self.context, &task).await {
                self.context.app.report_error(&error);
                self.not_settled.borrow_mut().insert(task.number);
            }
        }
        Ok(())
    }
}

/// Returns a name for this process: that of the machine, and its process id.
fn worker_name() -> String {
    let machine = rustix::system::uname();
    format!("{}-{}", machine.nodename().to_string_lossy(), std::process::id())
}
