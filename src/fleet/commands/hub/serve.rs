//! `agent hub serve`: looks at the Hub and feeds the queue with activations. Of several processes, one does so.

use crate::backoff::spread;
use crate::commands::hub::context::HubContext;
use crate::commands::monitor::{Listening, Monitor, listen};
use crate::commands::records::open_queue;
use crate::error::QueueError;
use crate::hub::api::AgentInfo;
use crate::hub::client::{HubError, POLL_AGENTS};
use crate::hub::feed::{Fed, feed};
use crate::leader::{Candidate, MAX_SILENCE};
use crate::metrics::{Figure, Metrics};
use crate::queue::Queue;
use agent_cli::commands::common_args::CommonArgs;
use agent_config::settings::Settings;
use agent_core::hub::{Activation, ActivationKind};
use agent_core::language::Language;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::AppResult;
use agent_terminal::Style;
use clap::Args;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, interval, sleep};

/// Pause after a poll that the Hub has held.
const AFTER_POLL: Duration = Duration::from_secs(5);
/// Time between two requests for all agents with notifications, and for those that were not active for some time.
const FULL_INTERVAL: Duration = Duration::from_mins(1);
/// Longest time between two renewals of the leadership.
const RENEWAL: Duration = Duration::from_secs(5);

/// Arguments of `agent hub serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The queue: `sqlite:/absolute/path`, `nats://HOST:PORT` or `nats:` for the configured server
    #[arg(long, value_name = "URL")]
    pub queue: Option<String>,
    /// Serve figures on this address and port (`fleet.listen`)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Look once, and end
    #[arg(long)]
    pub once: bool,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The process that feeds the queue.
struct Server<'a> {
    app: &'a App,
    queue: Queue,
    hub: HubContext,
    candidate: Candidate,
    language: Language,
    /// When all agents were last looked at.
    looked_at_all: Cell<Option<Instant>>,
    /// What was logged about agents, each once.
    logged: RefCell<BTreeSet<String>>,
    /// Whether the first failure of the Hub is the end.
    once: bool,
    metrics: Metrics,
    /// Agents with notifications that wait, of the last look.
    waiting: Cell<u32>,
}

/// Feeds the queue until a signal.
///
/// # Errors
/// Fails for an invalid configuration, and when the queue cannot be used.
pub fn serve(app: &App, args: &ServeArgs) -> AppResult<u8> {
    let settings = app.load_and_notify(&args.common.overrides())?.settings;
    app.redactor(&settings);
    app.block_on(Box::pin(run(app, &settings, args)))
}

async fn run(app: &App, settings: &Settings, args: &ServeArgs) -> AppResult<u8> {
    let interrupt = assemble::arm_interrupt(app, None, settings.language)?;
    let listening = Listening::open(app, &settings.fleet, args.listen.as_deref()).await?;
    let server = Server {
        app,
        queue: open_queue(app, settings, args.queue.as_deref()).await?,
        hub: HubContext::new(app, settings)?,
        candidate: Candidate::new(app.source.ordered_uuid()),
        language: settings.language,
        looked_at_all: Cell::default(),
        logged: RefCell::default(),
        once: args.once,
        metrics: Metrics::default(),
        waiting: Cell::default(),
    };
    let monitor = Monitor { metrics: &server.metrics, queue: &server.queue, hub: Some(&server.hub) };
    let served = tokio::select! {
        served = server.serve() => served,
        never = listen(listening, monitor) => match never {},
        () = interrupt.cancelled() => Ok(()),
    };
    // If the server of the queue is away, the leadership ends by itself.
    let _resigned = server.candidate.resign(&server.queue).await;
    served.map(|()| 0)
}

impl Server<'_> {
    async fn serve(&self) -> AppResult<()> {
        let (mut was_leader, begun) = (None, Instant::now());
        loop {
            let leads = self.candidate.lead(&self.queue).await;
            let leads = if self.once { Some(leads?) } else { self.or_log(leads)? } == Some(true);
            if was_leader != Some(leads) {
                let text = if leads {
                    messages::hub_leads(&self.hub.settings.url, self.language)
                } else {
                    messages::hub_waits(self.language).to_owned()
                };
                self.log(Style::Plain, &text);
            }
            was_leader = Some(leads);
            self.metrics.set(Figure::IsLeader, &[], f64::from(u8::from(leads)));
            if !leads {
                // The leader may have been killed a moment ago.
                if self.once && begun.elapsed() > MAX_SILENCE + RENEWAL {
                    return Ok(());
                }
                sleep(self.renewal()).await;
                continue;
            }
            let pause = tokio::select! {
                pause = self.look() => pause?,
                lost = self.keep_leading() => { lost?; continue }
            };
            if self.once {
                return Ok(());
            }
            tokio::select! {
                () = sleep(pause) => {}
                lost = self.keep_leading() => lost?,
            }
        }
    }

    /// Returns the time between two renewals of the leadership, which ends with the lease on a server.
    fn renewal(&self) -> Duration {
        RENEWAL.min(self.queue.lease() / 3)
    }

    /// Renews the leadership until it is lost.
    async fn keep_leading(&self) -> AppResult<()> {
        let mut renewals = interval(self.renewal());
        loop {
            renewals.tick().await;
            if self.or_log(self.candidate.lead(&self.queue).await)? == Some(false) {
                return Ok(());
            }
        }
    }

    /// Feeds the queue with what the Hub has now, and returns the time until the next look.
    async fn look(&self) -> AppResult<Duration> {
        let interval = Duration::from_secs(self.hub.settings.poll_interval.into());
        let begun = Instant::now();
        let polled = if self.once { Ok(None) } else { self.hub.client.poll().await };
        self.metrics.add_time(Figure::PollDuration, &[], begun.elapsed());
        self.metrics.clear(Figure::BackoffRemaining);
        self.waiting.set(0);
        let is_due = self.looked_at_all.get().is_none_or(|last| last.elapsed() >= FULL_INTERVAL);
        let (mut named, can_poll) = (BTreeSet::new(), !matches!(polled, Ok(None)));
        let pause = match polled {
            Ok(Some(agents)) => {
                named.extend(agents.iter().map(|agent| agent.id.clone()));
                let is_full = agents.len() >= POLL_AGENTS;
                let has_submitted = self.feed_notified(Ok(agents)).await?;
                if is_full && has_submitted { Duration::ZERO } else { AFTER_POLL }
            }
            Ok(None) => interval,
            Err(error) => {
                self.or_end(error)?;
                interval
            }
        };
        // A poll names a number of agents, perhaps always the same ones.
        if !can_poll || is_due {
            let listed = self.hub.client.with_notifications().await;
            let is_other = |agent: &AgentInfo| !named.contains(&agent.id);
            let others = listed.map(|agents| agents.into_iter().filter(is_other).collect());
            self.feed_notified(others).await?;
        }
        if is_due {
            self.looked_at_all.set(Some(Instant::now()));
            self.feed_stale().await?;
        }
        self.metrics.set(Figure::AgentsInBackoff, &[], f64::from(self.waiting.get()));
        Ok(spread(pause))
    }

    /// Activates the agents with unread notifications, those with the most first; returns whether one was.
    async fn feed_notified(&self, agents: Result<Vec<AgentInfo>, HubError>) -> AppResult<bool> {
        let mut agents = match agents {
            Ok(agents) => agents,
            Err(error) => return self.or_end(error).map(|()| false),
        };
        agents.sort_by_key(|agent| std::cmp::Reverse(agent.notification_count));
        let mut has_submitted = false;
        for agent in agents {
            let unread = Some(agent.notification_count).filter(|unread| *unread > 0);
            has_submitted |= self.feed(agent.id, ActivationKind::Notification, unread).await?;
        }
        Ok(has_submitted)
    }

    /// Activates the agents that were not active for some time, the stalest first; without a time they never were.
    async fn feed_stale(&self) -> AppResult<()> {
        match self.hub.client.stale(self.hub.settings.min_activation_interval).await {
            Ok(mut agents) => {
                agents.sort_by(|one, other| one.last_activated_at.cmp(&other.last_activated_at));
                for agent in agents {
                    self.feed(agent.id, ActivationKind::Exploration, None).await?;
                }
            }
            Err(error) => self.or_end(error)?,
        }
        Ok(())
    }

    /// Submits an activation of an agent, unless it has one or waits; returns whether it did.
    async fn feed(&self, agent: String, kind: ActivationKind, unread: Option<u64>) -> AppResult<bool> {
        match self.hub.definition(&agent, |text| self.log_once(text)) {
            Ok(definition) if kind == ActivationKind::Exploration && !definition.explores => {
                return Ok(false);
            }
            Ok(_) => {}
            Err(error) => {
                self.log_once(&messages::hub_undefined_agent(&agent, &error.to_string(), self.language));
                return Ok(false);
            }
        }
        let now = self.app.source.unix_time().as_secs();
        let min_interval = self.hub.settings.min_activation_interval.into();
        let activation = Activation { agent: agent.clone(), kind };
        match self.or_log(feed(&self.queue, activation, unread, min_interval, now).await)? {
            Some(Fed::Submitted(id)) => {
                self.log(Style::Plain, &messages::hub_submitted(&id, kind.name(), self.language));
                return Ok(true);
            }
            Some(Fed::Waits(until)) if kind == ActivationKind::Notification => {
                self.waiting.set(self.waiting.get() + 1);
                let remaining = Duration::from_secs(until.saturating_sub(now)).as_secs_f64();
                self.metrics.set(Figure::BackoffRemaining, &[("agent_id", &agent)], remaining);
            }
            Some(Fed::Unusable) => self.log_once(&messages::hub_unusable_agent(&agent, self.language)),
            _ => {}
        }
        Ok(false)
    }

    /// Returns the value; `None` if the queue cannot be used now, or for what was asked, which is logged.
    fn or_log<T>(&self, value: Result<T, QueueError>) -> AppResult<Option<T>> {
        match value {
            Ok(value) => Ok(Some(value)),
            Err(error @ QueueError::Storage(_)) => Err(error.into()),
            Err(error) => {
                self.log(Style::Warning, &error.to_string());
                Ok(None)
            }
        }
    }

    /// Logs a failure of the Hub, with `--once` it is the end.
    fn or_end(&self, error: HubError) -> AppResult<()> {
        if self.once {
            return Err(error.into());
        }
        self.log(Style::Warning, &messages::hub_away(&error.to_string(), self.language));
        Ok(())
    }

    fn log_once(&self, text: &str) {
        if self.logged.borrow_mut().insert(text.to_owned()) {
            self.log(Style::Warning, text);
        }
    }

    fn log(&self, style: Style, text: &str) {
        self.app.notify(style, &self.app.redact(text));
    }
}
