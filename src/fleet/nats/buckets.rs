//! What the queue has on a NATS server: a stream of hints, and buckets for records, leases and results. All are created when they are missing.

use crate::error::QueueError;
use crate::nats::connection::NatsServer;
use crate::retention;
use crate::unreadable::Unreadable;
use agent_core::fleet::{Priority, TaskRecord};
use agent_core::hub::{ActivationKind, Lane};
use agent_runtime::clock::Clock;
use async_nats::Client;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context, kv};
use std::fmt::Display;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Requests of one command at the same time.
pub const CONCURRENCY: usize = 64;

/// Key of the random id of the queue.
const QUEUE_ID: &str = "id";

/// Messages that workers may hold at the same time, those of all of them.
const MAX_HELD: i64 = 100_000;

/// Least time after which a key of the leases may end.
const MIN_LEASE: Duration = Duration::from_secs(1);

/// Time limit for further tries to create something on the server, and the pause between two tries.
const CREATE_TIME: Duration = Duration::from_secs(1);
const CREATE_PAUSE: Duration = Duration::from_millis(100);

/// The stream and the buckets.
pub struct Buckets {
    /// Publishes messages.
    pub context: Context,
    /// A message with the id of each task that waits or is claimed.
    pub hints: Stream,
    /// The records, by the ids of the tasks.
    pub records: kv::Store,
    /// A key for each worker that is alive, which it renews; the server removes it after the lease.
    pub leases: kv::Store,
    /// The documents of runs.
    pub results: ObjectStore,
    /// Time after which the server removes a key of `leases`.
    pub lease: Duration,
    /// Records that could not be read.
    pub unreadable: Unreadable,
    /// Values that all workers share.
    pub values: kv::Store,
    prefix: String,
}

impl Buckets {
    /// Opens them on `server`; new ones take back what a worker has not renewed for `lease`.
    ///
    /// # Errors
    /// Fails when the server does not answer, or refuses it.
    pub async fn open(client: Client, server: &NatsServer, lease: Duration) -> Result<Self, QueueError> {
        let (context, prefix) = (jetstream::new(client), server.prefix.clone());
        let stream = stream::Config {
            name: format!("{prefix}_TASKS"),
            subjects: vec![format!("{prefix}.tasks.>")],
            retention: RetentionPolicy::WorkQueue,
            // At most one message for a task, and a second one is refused.
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            num_replicas: server.replicas,
            ..stream::Config::default()
        };
        let hints = created(async || context.get_or_create_stream(stream.clone()).await).await?;
        let bucket =
            |name: &str, max_age: Duration| bucket(&format!("{prefix}_{name}"), max_age, server.replicas);
        let records = open_bucket(&context, bucket("STATE", Duration::ZERO)).await?;
        let values = open_bucket(&context, bucket("VALUES", Duration::ZERO)).await?;
        let leases = open_bucket(&context, bucket("LEASE", lease)).await?;
        let lease = leases.status().await.map_err(away)?.max_age();
        if lease < MIN_LEASE {
            let why = format!(
                "the bucket {prefix}_LEASE has a maximum age of {} s, which is too short; delete it, or set `fleet.nats.prefix`",
                lease.as_secs()
            );
            return Err(QueueError::Storage(why));
        }
        let results = open_results(&context, format!("{prefix}_SESSIONS"), server.replicas).await?;
        Ok(Self {
            context,
            hints,
            records,
            leases,
            results,
            lease,
            unreadable: Unreadable::default(),
            values,
            prefix,
        })
    }

    /// Returns the random id of the queue, which the first process creates.
    ///
    /// # Errors
    /// Fails when the server does not answer, or refuses it.
    pub async fn random_id(&self, clock: &Clock) -> Result<String, QueueError> {
        let values = &self.values;
        // Another process may create it meanwhile.
        let mut known = values.get(QUEUE_ID).await.map_err(away)?;
        if known.is_none() {
            let _ = values.create(QUEUE_ID, clock.short_id().into()).await;
            known = values.get(QUEUE_ID).await.map_err(away)?;
        }
        let known = known.ok_or_else(|| away("the id of the queue cannot be stored"))?;
        Ok(String::from_utf8_lossy(&known).into_owned())
    }

    /// Returns the subject of the message of a task.
    pub fn subject(&self, task: &TaskRecord) -> String {
        let class = match &task.spec.activation {
            None => task.spec.priority.into(),
            Some(activation) => activation.kind.name(),
        };
        format!("{}.tasks.{class}.{}", self.prefix, task.id)
    }

    /// Returns the consumers of the messages about tasks of `lane`, the most urgent ones first. All workers share them.
    ///
    /// # Errors
    /// Fails when the server does not answer, or refuses it.
    pub async fn consumers(&self, lane: Lane) -> Result<Vec<PullConsumer>, QueueError> {
        let classes: Vec<&str> = match lane {
            Lane::Submitted => [Priority::High, Priority::Normal, Priority::Low].map(Into::into).to_vec(),
            Lane::Hub(None) => {
                [ActivationKind::Notification, ActivationKind::Exploration].map(ActivationKind::name).to_vec()
            }
            Lane::Hub(Some(kind)) => vec![kind.name()],
        };
        let mut consumers = Vec::new();
        for name in classes {
            let config = pull::Config {
                durable_name: Some(name.to_owned()),
                filter_subject: format!("{}.tasks.{name}.>", self.prefix),
                ack_wait: self.lease,
                max_ack_pending: MAX_HELD,
                ..pull::Config::default()
            };
            consumers.push(self.hints.get_or_create_consumer(name, config).await.map_err(away)?);
        }
        Ok(consumers)
    }
}

/// Prefix of the streams of buckets (ADR-8 of NATS).
const BUCKET_PREFIX: &str = "KV_";

/// Returns the stream of a bucket. `create_key_value` of the client is not used: it does not understand the account of servers of version 2.9.
fn bucket(name: &str, max_age: Duration, num_replicas: usize) -> stream::Config {
    stream::Config {
        subjects: vec![format!("$KV.{name}.>")],
        name: format!("{BUCKET_PREFIX}{name}"),
        max_messages_per_subject: 1,
        max_age,
        num_replicas,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..stream::Config::default()
    }
}

async fn open_bucket(context: &Context, config: stream::Config) -> Result<kv::Store, QueueError> {
    let name = config.name.trim_start_matches(BUCKET_PREFIX).to_owned();
    created(async || context.get_or_create_stream(config.clone()).await).await?;
    context.get_key_value(name).await.map_err(away)
}

async fn open_results(
    context: &Context,
    bucket: String,
    num_replicas: usize,
) -> Result<ObjectStore, QueueError> {
    let config = object_store::Config {
        bucket: bucket.clone(),
        max_age: retention::OBJECTS,
        num_replicas,
        ..object_store::Config::default()
    };
    created(async || match context.get_object_store(&bucket).await {
        Err(_) => context.create_object_store(config.clone()).await,
        Ok(store) => Ok(store),
    })
    .await
}

/// Gets or creates something on the server. While another process creates it, the server refuses that for a moment ("subjects overlap").
async fn created<T, E: Display>(get_or_create: impl AsyncFn() -> Result<T, E>) -> Result<T, QueueError> {
    let until = Instant::now() + CREATE_TIME;
    loop {
        match get_or_create().await {
            Ok(created) => return Ok(created),
            // A server that does not answer is not asked again: each request has a time limit of its own.
            Err(error) if Instant::now() >= until => return Err(away(error)),
            Err(_) => sleep(CREATE_PAUSE).await,
        }
    }
}

/// Returns an error of the server, or of the connection to it, which may pass.
pub fn away(error: impl Display) -> QueueError {
    QueueError::Away(error.to_string())
}
