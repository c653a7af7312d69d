//! `agent worker`: does the tasks of the queue, each in a worktree of its own.

use crate::cli::commands::client_run::ClientArgs;
use crate::cli::commands::fleet::attempt::{Attempt, settle};
use crate::cli::commands::fleet::context::WorkerContext;
use crate::cli::commands::fleet::records::open_queue;
use crate::cli::compose::app::App;
use crate::cli::compose::{self, directories};
use crate::cli::error::CliResult;
use crate::core::fleet::{TaskRecord, TaskState};
use crate::fleet::boot_clock::BootTime;
use crate::messages;
use crate::terminal::Style;
use clap::Args;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::time::Duration;
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
}

/// Does tasks until it is told to end, and returns the exit code.
///
/// # Errors
/// Fails for an invalid configuration, and when the queue cannot be used.
pub fn worker(app: &App, args: WorkerArgs) -> CliResult<u8> {
    let WorkerArgs { jobs, once, drain, grace, queue, client } = args;
    let options = client.into_options()?;
    let settings = app.load_and_notify(&options.flags())?.settings;
    let queue = open_queue(app, &settings, queue.as_deref())?;
    directories::prepare(&settings)?;
    let context = WorkerContext {
        app,
        queue: RefCell::new(queue),
        options,
        language: settings.language,
        lease: Duration::from_secs(settings.fleet.lease_seconds.into()),
        stop: CancellationToken::new(),
    };
    let worker = Worker { context, name: worker_name() };
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
        let interrupt = compose::arm_interrupt(self.context.app, None, self.context.language)?;
        self.settle_all().await?;
        let mut running = FuturesUnordered::new();
        let (mut claimed, mut all_done) = (0_usize, true);
        let mut after_grace = std::pin::pin!(self.after_grace(&interrupt, limits.grace));
        loop {
            while running.len() < limits.jobs && !interrupt.is_cancelled() && !(limits.once && claimed > 0) {
                let Some(task) = self.claim()? else { break };
                claimed += 1;
                running.push(self.perform(task));
            }
            let may_end = limits.once || limits.drain || interrupt.is_cancelled();
            if running.is_empty()
                && may_end
                && (!limits.drain || interrupt.is_cancelled() || !self.has_open_tasks()?)
            {
                break;
            }
            tokio::select! {
                Some(state) = running.next() => all_done &= state? == TaskState::Done,
                () = sleep(IDLE) => {}
                () = &mut after_grace, if !self.context.stop.is_cancelled() => self.context.stop.cancel(),
            }
        }
        Ok(if limits.once && !all_done { 2 } else { 0 })
    }

    /// Ends when a signal has arrived and the time of grace has passed.
    async fn after_grace(&self, interrupt: &CancellationToken, grace: Duration) {
        interrupt.cancelled().await;
        sleep(grace).await;
    }

    fn has_open_tasks(&self) -> CliResult<bool> {
        Ok(self.context.queue.borrow().has_open_tasks()?)
    }

    fn claim(&self) -> CliResult<Option<TaskRecord>> {
        let time = BootTime::now();
        let lease = (&time, &time.after(self.context.lease));
        Ok(self.context.queue.borrow_mut().claim(&self.name, lease, self.context.now())?)
    }

    /// Performs the newest attempt of a task; returns the state in which it leaves the task.
    async fn perform(&self, task: TaskRecord) -> CliResult<TaskState> {
        let text = messages::task_started(&task.id, task.attempt, &task.spec.prompt, self.context.language);
        self.context.log(Style::Bold, &text);
        Box::pin(Attempt::new(&self.context, &task).perform()).await?;
        let task = self.context.queue.borrow().get(&task.id)?;
        let style = if task.state == TaskState::Done { Style::Plain } else { Style::Warning };
        self.context.log(style, &messages::task_ended(&task, self.context.language));
        Ok(task.state)
    }

    /// Publishes the commits of tasks whose worker was killed before it could, and removes what such workers have left.
    async fn settle_all(&self) -> CliResult<()> {
        let tasks = self.context.queue.borrow().unsettled()?;
        for task in tasks {
            if let Err(error) = settle(&self.context, &task).await {
                self.context.app.report_error(&error);
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
