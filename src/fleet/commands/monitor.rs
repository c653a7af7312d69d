//! `fleet.listen`: the figures of a worker or of `agent hub serve`, whether it works, and the cache of definitions.

use crate::commands::hub::context::HubContext;
use crate::error::QueueError;
use crate::metrics::{Figure, Metrics};
use crate::queue::Queue;
use crate::selection::Selection;
use agent_config::fleet::FleetSettings;
use agent_core::failure::FailureKind;
use agent_core::fleet::TaskState;
use agent_core::hub::Lane;
use agent_http::server::{AsyncAnswer, HttpAnswer, HttpRequest, serve};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use futures_util::future::LocalBoxFuture;
use serde_json::json;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Longest wait for the queue: Prometheus waits 10 s for all figures.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Where the figures are served, and to whom.
pub struct Listening {
    address: SocketAddr,
    listener: TcpListener,
    token: Option<String>,
    prefix: String,
}

impl Listening {
    /// Opens the port of `address`, by default of `fleet.listen`; `None` without one.
    ///
    /// # Errors
    /// Fails when the port cannot be used, and for an address that other machines reach without a token.
    pub async fn open(app: &App, settings: &FleetSettings, address: Option<&str>) -> AppResult<Option<Self>> {
        let Some(text) = address.or(settings.listen.as_deref()) else { return Ok(None) };
        let wrong = |why: String| AppError::new(FailureKind::Config, format!("fleet.listen {text}: {why}"));
        let address: SocketAddr = text
            .parse()
            .map_err(|_| wrong("write an address and a port, such as 127.0.0.1:9091".to_owned()))?;
        let token = settings.listen_token_env.as_ref().map(|name| {
            let token = app.environment.get(name).map(str::to_owned);
            token.ok_or_else(|| wrong(format!("the environment variable {name} is not set")))
        });
        let token = token.transpose()?;
        if !address.ip().is_loopback() && token.is_none() {
            return Err(wrong("other machines reach it: set `fleet.listen_token_env`".to_owned()));
        }
        let listener = TcpListener::bind(address).await.map_err(|error| wrong(error.to_string()))?;
        Ok(Some(Self { address, listener, token, prefix: settings.metrics_prefix.clone() }))
    }

    /// Returns its address and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// What is served.
pub struct Monitor<'a> {
    /// The figures.
    pub metrics: &'a Metrics,
    /// The queue.
    pub queue: &'a Queue,
    /// The Hub, whose definitions are read again on request.
    pub hub: Option<&'a HubContext>,
}

/// Answers requests on the port for ever; without a port it waits for ever.
pub async fn listen(listening: Option<Listening>, monitor: Monitor<'_>) -> Infallible {
    let Some(Listening { listener, token, prefix, .. }) = listening else { return pending().await };
    serve(listener, &Served { token, prefix, monitor }).await
}

struct Served<'a> {
    token: Option<String>,
    prefix: String,
    monitor: Monitor<'a>,
}

impl AsyncAnswer for Served<'_> {
    fn answer(&self, request: HttpRequest) -> LocalBoxFuture<'_, HttpAnswer> {
        Box::pin(async move {
            let is_known = self.token.is_none() || request.token == self.token;
            match (request.method.as_str(), request.path.as_str()) {
                ("GET", "/health") => HttpAnswer::json(&json!({"status": "ok"})),
                ("GET", "/ready") => self.ready().await,
                _ if !is_known => HttpAnswer::error(401, "the token is missing or wrong"),
                ("GET", "/metrics") => self.metrics().await,
                ("POST", "/api/v1/cache/invalidate") => {
                    let agent = request.query.get("agent").map(String::as_str);
                    self.monitor.hub.iter().for_each(|hub| hub.forget_definitions(agent));
                    HttpAnswer::json(&json!({"status": "ok"}))
                }
                _ => HttpAnswer::error(
                    404,
                    "there are /metrics, /health, /ready and POST /api/v1/cache/invalidate",
                ),
            }
        })
    }
}

impl Served<'_> {
    async fn ready(&self) -> HttpAnswer {
        match in_time(self.monitor.queue.has_open_tasks(Lane::Submitted)).await {
            Ok(_) => HttpAnswer::json(&json!({"status": "ready"})),
            Err(error) => HttpAnswer::error(503, &error.to_string()),
        }
    }

    /// Answers with the figures, without those of the queue if it cannot be used.
    async fn metrics(&self) -> HttpAnswer {
        let metrics = self.monitor.metrics;
        if in_time(self.read_queue()).await.is_err() {
            for figure in [Figure::QueueDepth, Figure::QueueActiveTasks, Figure::RunnersActive] {
                metrics.clear(figure);
            }
        }
        HttpAnswer::text(metrics.text(&self.prefix))
    }

    /// Sets the figures of the queue.
    async fn read_queue(&self) -> Result<(), QueueError> {
        let Monitor { metrics, queue, .. } = &self.monitor;
        for (priority, depth) in queue.depths().await? {
            let depth = count(usize::try_from(depth).unwrap_or(usize::MAX));
            metrics.set(Figure::QueueDepth, &[("priority", priority.into())], depth);
        }
        let claimed = queue.select(Selection::InState(TaskState::Claimed)).await?;
        let workers: BTreeSet<&str> = claimed.iter().filter_map(|task| task.worker.as_deref()).collect();
        metrics.set(Figure::QueueActiveTasks, &[], count(claimed.len()));
        metrics.set(Figure::RunnersActive, &[], count(workers.len()));
        Ok(())
    }
}

/// Returns what the queue answers within [`MAX_WAIT`].
async fn in_time<T>(answer: impl Future<Output = Result<T, QueueError>>) -> Result<T, QueueError> {
    let late = |_| Err(QueueError::Away(format!("the queue has not answered for {} s", MAX_WAIT.as_secs())));
    timeout(MAX_WAIT, answer).await.unwrap_or_else(late)
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}
