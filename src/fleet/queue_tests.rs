//! What holds for every store.

use super::*;
use crate::leader::{Candidate, MAX_SILENCE};
use crate::nats::connection::{self, Credentials};
use crate::nats_server::NatsServer;
use agent_core::failure::{Failure, FailureKind};
use agent_core::fleet::Priority;
use agent_core::hub::{Activation, ActivationKind, PostState, PostTarget, Subject};
use agent_core::stop_reason::Status;
use agent_runtime::clock::Clock;
use std::rc::Rc;

/// A queue, and what it needs while it is used.
struct Open {
    queue: Queue,
    _directory: Option<tempfile::TempDir>,
    _server: Option<NatsServer>,
}

const LEASE: Duration = Duration::from_secs(30);

/// Opens an empty queue in a database.
fn database() -> Open {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("tasks.sqlite"), LEASE).unwrap();
    Open { queue: Queue::Sqlite(store), _directory: Some(directory), _server: None }
}

/// Opens an empty queue of each kind.
async fn queues() -> Vec<Open> {
    let (lease, sqlite) = (LEASE, database());
    let Some(server) = NatsServer::start() else { return vec![sqlite] };
    let nats = Open { queue: connect(&server.url(), lease).await, _directory: None, _server: Some(server) };
    vec![sqlite, nats]
}

async fn connect(url: &str, lease: Duration) -> Queue {
    let server = connection::NatsServer {
        url: url.to_owned(),
        credentials: Credentials::None,
        ca_file: None,
        insecure: false,
        prefix: "AGENT".to_owned(),
        replicas: 1,
    };
    Queue::Nats(Box::new(NatsStore::open(&server, lease, Rc::new(Clock::new())).await.unwrap()))
}

fn tasks(ids: &[(&str, Priority)]) -> Vec<(String, TaskSpec)> {
    ids.iter()
        .map(|(id, priority)| {
            ((*id).to_owned(), TaskSpec { priority: *priority, ..TaskSpec::new(*id, "/", 2) })
        })
        .collect()
}

/// Opens a queue of each kind with these tasks of normal priority.
async fn queues_with(ids: &[&str]) -> Vec<Open> {
    let queues = queues().await;
    for Open { queue, .. } in &queues {
        let ids: Vec<_> = ids.iter().map(|id| (*id, Priority::Normal)).collect();
        queue.submit(&tasks(&ids), 1).await.unwrap();
    }
    queues
}

fn ids<const N: usize>(ids: [&str; N]) -> [String; N] {
    ids.map(str::to_owned)
}

async fn claim(queue: &Queue) -> Option<TaskRecord> {
    queue.claim(Lane::Submitted, "w", 5).await.unwrap()
}

/// Claims a task that waits. A server may give its message to a machine that stands still for half a second, and then again after the
/// lease; a database gives the task at once.
async fn claimed(queue: &Queue) -> TaskRecord {
    let tries = async {
        loop {
            match (claim(queue).await, queue) {
                (Some(task), _) => return task,
                (None, Queue::Sqlite(_)) => panic!("no task waits"),
                (None, Queue::Nats(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(2 * LEASE, tries).await.expect("the server gives no task")
}

async fn finish(queue: &Queue, task: &TaskRecord, ending: &Ending) -> bool {
    queue.finish(task, ending, None, 2).await.unwrap()
}

async fn count(queue: &Queue, selection: Selection) -> usize {
    queue.select(selection).await.unwrap().len()
}

#[tokio::test]
async fn b10_the_priority_then_the_order_of_submission_decide() {
    let order =
        [("low", Priority::Low), ("a", Priority::Normal), ("b", Priority::Normal), ("high", Priority::High)];
    for Open { queue, .. } in queues().await {
        queue.submit(&tasks(&order), 1).await.unwrap();
        let mut claimed = Vec::new();
        while let Some(task) = claim(&queue).await {
            claimed.push(task.id);
        }
        assert_eq!(claimed, ["high", "a", "b", "low"]);
    }
}

#[tokio::test]
async fn b08_a_claim_is_exclusive_and_only_the_newest_attempt_changes_the_task() {
    for Open { queue, .. } in queues_with(&["a"]).await {
        let first = claimed(&queue).await;
        assert_eq!((first.attempt, claim(&queue).await), (1, None));
        assert!(queue.renew(&first).await.unwrap());
        assert!(queue.give_back(&first, 2).await.unwrap());
        let second = claimed(&queue).await;
        assert_eq!((second.attempt, second.failed_attempts), (2, 0));
        let done = Ending::Done(Some("commit".to_owned()));
        assert!(!queue.renew(&first).await.unwrap());
        assert!(!finish(&queue, &first, &done).await);
        assert!(!queue.give_back(&first, 2).await.unwrap());
        assert_eq!(queue.get("a").await.unwrap().state, TaskState::Claimed);
        assert!(finish(&queue, &second, &done).await);
        let task = queue.get("a").await.unwrap();
        assert_eq!((task.commit.as_deref(), &task.branch), (Some("commit"), &None));
        assert_eq!(count(&queue, Selection::Unsettled { until: 9 }).await, 1);
        queue.set_settled(&second).await.unwrap();
        assert_eq!(queue.get("a").await.unwrap().branch.as_deref(), Some("agent/task/a"));
        assert_eq!(count(&queue, Selection::Unsettled { until: 9 }).await, 0);
    }
}

#[tokio::test]
async fn another_worker_goes_on_with_an_attempt_once() {
    for Open { queue, .. } in queues_with(&["a"]).await {
        let task = claimed(&queue).await;
        let begin = |task: &mut TaskRecord| {
            (task.session_id, task.base) = (Some("session".to_owned()), Some("base".to_owned()));
        };
        assert!(queue.update(&task, begin).await.unwrap());
        let adopted = queue.adopt(&task, "other", true).await.unwrap().unwrap();
        assert_eq!((adopted.attempt, adopted.worker.as_deref()), (1, Some("other")));
        assert_eq!((adopted.session_id.as_deref(), adopted.base.as_deref()), (Some("session"), Some("base")));
        assert_eq!(queue.adopt(&task, "third", true).await.unwrap(), None);
        assert!(!queue.renew(&task).await.unwrap() && queue.renew(&adopted).await.unwrap());
        assert!(!finish(&queue, &task, &Ending::Done(None)).await);
    }
}

#[tokio::test]
async fn a_task_that_kills_its_workers_is_not_gone_on_with_for_ever() {
    for Open { queue, .. } in queues_with(&["a"]).await {
        let task = claimed(&queue).await;
        let adopted = queue.adopt(&task, "second", true).await.unwrap().unwrap();
        assert_eq!((adopted.failed_attempts, adopted.spec.max_attempts), (1, 2));
        assert_eq!(queue.adopt(&adopted, "third", true).await.unwrap(), None);
        assert!(queue.renew(&adopted).await.unwrap());
    }
}

#[tokio::test]
async fn the_cause_of_a_failure_is_bounded() {
    for Open { queue, .. } in queues_with(&["a"]).await {
        let task = claimed(&queue).await;
        assert!(finish(&queue, &task, &Ending::Failed("é".repeat(1 << 20))).await);
        let cause = queue.record("a").await.unwrap().cause.unwrap();
        assert_eq!(cause.len(), 4 << 10);
    }
}

#[tokio::test]
async fn an_attempt_of_a_removed_task_is_none_of_a_later_task_with_its_id() {
    for Open { queue, .. } in queues_with(&["a"]).await {
        let old = claimed(&queue).await;
        queue.cancel(&ids(["a"]), 2).await.unwrap();
        queue.remove(&ids(["a"])).await.unwrap();
        assert!(!queue.renew(&old).await.unwrap());
        queue.submit(&[("a".to_owned(), TaskSpec::new("other", "/", 2))], 3).await.unwrap();
        let new = claimed(&queue).await;
        assert_eq!(new.attempt, 1);
        assert!(!queue.renew(&old).await.unwrap());
        assert!(!finish(&queue, &old, &Ending::Done(None)).await);
        assert!(finish(&queue, &new, &Ending::Done(None)).await);
    }
}

#[tokio::test]
async fn a_task_whose_attempts_all_fail_is_dead_and_can_be_retried() {
    for Open { queue, .. } in queues().await {
        let spec = TaskSpec { max_attempts: 1, ..TaskSpec::new("a", "/", 2) };
        queue.submit(&[("a".to_owned(), spec)], 1).await.unwrap();
        let task = claimed(&queue).await;
        assert!(queue.has_open_tasks(Lane::Submitted).await.unwrap());
        assert!(finish(&queue, &task, &Ending::Retry("server".to_owned())).await);
        let dead = queue.get("a").await.unwrap();
        assert_eq!(
            (dead.state, dead.failed_attempts, dead.cause.as_deref()),
            (TaskState::Dead, 1, Some("server"))
        );
        assert!(!queue.has_open_tasks(Lane::Submitted).await.unwrap());
        queue.retry(&ids(["a"]), 3).await.unwrap();
        assert_eq!(claimed(&queue).await.attempt, 2);
    }
}

#[tokio::test]
async fn the_same_id_is_the_same_task_or_refused_and_then_nothing_is_added() {
    for Open { queue, .. } in queues_with(&["a"]).await {
        queue.submit(&tasks(&[("a", Priority::Normal)]), 2).await.unwrap();
        let changed = ("a".to_owned(), TaskSpec::new("other", "/", 2));
        let both = [("new".to_owned(), TaskSpec::new("x", "/", 2)), changed];
        assert_eq!(queue.submit(&both, 2).await, Err(QueueError::Different("a".to_owned())));
        assert_eq!(count(&queue, Selection::All).await, 1);
        assert_eq!(queue.get("new").await.unwrap_err(), QueueError::Unknown("new".to_owned()));
    }
}

#[tokio::test]
async fn a_cancelled_task_is_no_longer_its_workers_and_changes_of_several_are_all_or_none() {
    for Open { queue, .. } in queues_with(&["a", "b"]).await {
        let task = claimed(&queue).await;
        assert!(matches!(queue.remove(&ids(["a"])).await, Err(QueueError::State(_))));
        let unknown = QueueError::Unknown("missing".to_owned());
        assert_eq!(queue.cancel(&ids(["b", "missing"]), 2).await, Err(unknown));
        let states = [TaskState::Claimed, TaskState::Queued];
        assert_eq!(queue.states(&ids(["a", "b"])).await.unwrap(), states);
        queue.cancel(&ids(["a"]), 2).await.unwrap();
        assert!(matches!(queue.cancel(&ids(["a"]), 2).await, Err(QueueError::State(_))));
        assert!(!queue.renew(&task).await.unwrap());
        assert_eq!(count(&queue, Selection::InState(TaskState::Cancelled)).await, 1);
    }
}

#[tokio::test]
async fn ended_tasks_are_removed_after_their_time_unless_a_branch_is_missing() {
    for Open { queue, .. } in queues_with(&["a", "b", "c"]).await {
        let task = claimed(&queue).await;
        finish(&queue, &task, &Ending::Done(Some("commit".to_owned()))).await;
        queue.cancel(&ids(["b"]), 2).await.unwrap();
        queue.set_settled(&task).await.unwrap();
        let after = retention::ENDED_TASKS.as_secs();
        queue.sweep(2 + after).await.unwrap();
        queue.submit(&[], 2 + after).await.unwrap();
        assert_eq!(count(&queue, Selection::All).await, 3);
        if !queue.is_shared() {
            queue.submit(&[], 3 + after).await.unwrap();
            assert_eq!(queue.select(Selection::All).await.unwrap()[0].id, "c");
            assert_eq!(count(&queue, Selection::All).await, 1);
        }
    }
}

#[tokio::test]
async fn a_record_is_never_too_long() {
    for Open { queue, .. } in queues_with(&["a", "b"]).await {
        let long = "x".repeat(MAX_RESULT_BYTES);
        let result =
            RunResult { status: Status::Success, output: long.as_str().into(), ..RunResult::default() };
        let first = claimed(&queue).await;
        queue.finish(&first, &Ending::Done(None), Some(&result), 2).await.unwrap();
        let cut = queue.get("a").await.unwrap().result.unwrap().output.text().into_owned();
        assert!(cut.ends_with("x\n[The first 128 KiB of 1024 KiB; the session has all of it.]"));
        let second = claimed(&queue).await;
        let error = Failure { kind: FailureKind::Internal, message: long, retryable: false };
        let result = RunResult { error: Some(error), ..result };
        queue.finish(&second, &Ending::Done(None), Some(&result), 2).await.unwrap();
        assert_eq!(queue.get("b").await.unwrap().result, None);
        let task = ("c".to_owned(), TaskSpec::new("x".repeat(MAX_TASK_BYTES), "/", 2));
        let too_long = QueueError::TooLong("c".to_owned(), MAX_TASK_BYTES);
        assert_eq!(queue.submit(&[task], 2).await, Err(too_long));
    }
}

fn activation(agent: &str, kind: ActivationKind) -> (String, TaskSpec) {
    let spec = TaskSpec::of_activation(Activation { agent: agent.to_owned(), kind }, 3);
    (format!("hub-{agent}-1"), spec)
}

#[tokio::test]
async fn a_worker_claims_tasks_of_its_lane_only() {
    for Open { queue, .. } in queues_with(&["t"]).await {
        let activations =
            [activation("x", ActivationKind::Exploration), activation("n", ActivationKind::Notification)];
        queue.submit(&activations, 1).await.unwrap();
        assert!(queue.claim_activation("hub-none-1", "w", 1).await.unwrap().is_none());
        let one = queue.claim_activation("hub-x-1", "w", 1).await.unwrap().unwrap();
        assert!(queue.claim_activation("hub-x-1", "w", 1).await.unwrap().is_none());
        assert!(queue.give_back(&one, 1).await.unwrap());
        let mut found = Vec::new();
        while let Some(task) = next_activation(&queue).await {
            found.push(task.id);
        }
        assert_eq!(found, ["hub-n-1", "hub-x-1"], "notifications come first");
        assert!(queue.has_open_tasks(Lane::Hub(None)).await.unwrap());
        assert_eq!(queue.record("t").await.unwrap().state, TaskState::Queued);
    }
    for Open { queue, .. } in queues().await {
        queue.submit(&[activation("n", ActivationKind::Notification)], 1).await.unwrap();
        assert_eq!(claim(&queue).await, None);
        assert!(!queue.has_open_tasks(Lane::Submitted).await.unwrap());
    }
}

/// Claims the next activation, as another worker: one has a single lane.
async fn next_activation(queue: &Queue) -> Option<TaskRecord> {
    queue.claim(Lane::Hub(None), "other", 5).await.unwrap()
}

#[tokio::test]
async fn only_the_newest_attempt_records_posts_and_a_key_has_one() {
    for Open { queue, .. } in queues().await {
        queue.submit(&[activation("a", ActivationKind::Notification)], 1).await.unwrap();
        let first = next_activation(&queue).await.unwrap();
        let subject = Subject { notification: "n1".to_owned(), post: "p1".to_owned() };
        assert!(queue.update(&first, |task| task.subject = Some(subject.clone())).await.unwrap());
        let mut post = OutboxPost {
            key: "hub-a-1:1".to_owned(),
            target: PostTarget::Comment { post: "p1".to_owned() },
            content: "hello".to_owned(),
            earlier: Vec::new(),
            state: PostState::Intended,
        };
        assert!(queue.set_post(&first, &post).await.unwrap());
        queue.give_back(&first, 1).await.unwrap();
        assert!(!queue.set_post(&first, &post).await.unwrap());
        let second = next_activation(&queue).await.unwrap();
        assert_eq!(
            (second.subject.as_ref(), second.posts.as_slice()),
            (Some(&subject), [post.clone()].as_slice())
        );
        post.state = PostState::Done { post_id: "c1".to_owned() };
        assert!(queue.set_post(&second, &post).await.unwrap());
        assert_eq!(queue.record(&second.id).await.unwrap().posts, [post]);
    }
}

#[tokio::test]
async fn a_shared_value_loses_no_change_and_one_process_leads() {
    for Open { queue, .. } in queues().await {
        let add = |count: &mut u32| {
            *count += 1;
            *count
        };
        assert_eq!(queue.change_value("agent.a", add).await.unwrap(), 1);
        assert_eq!(queue.change_value("agent.a", add).await.unwrap(), 2);
        assert_eq!(queue.change_value("agent.b", |count: &mut u32| *count).await.unwrap(), 0);
        let (one, two) = (Candidate::new("one".to_owned()), Candidate::new("two".to_owned()));
        assert!(one.lead(&queue).await.unwrap() && one.lead(&queue).await.unwrap());
        assert!(!two.lead(&queue).await.unwrap());
        two.resign(&queue).await.unwrap();
        assert!(!two.lead(&queue).await.unwrap());
        one.resign(&queue).await.unwrap();
        assert!(two.lead(&queue).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn b19_a_leader_that_is_silent_for_20_seconds_is_replaced_by_one_process() {
    let Open { queue, .. } = &database();
    let [one, two, three] = ["one", "two", "three"].map(|name| Candidate::new(name.to_owned()));
    assert!(one.lead(queue).await.unwrap() && !two.lead(queue).await.unwrap());
    tokio::time::advance(MAX_SILENCE * 3 / 4).await;
    assert!(
        one.lead(queue).await.unwrap()
            && !two.lead(queue).await.unwrap()
            && !three.lead(queue).await.unwrap()
    );
    tokio::time::advance(MAX_SILENCE * 3 / 4).await;
    assert!(!two.lead(queue).await.unwrap());
    tokio::time::advance(MAX_SILENCE / 4).await;
    assert!(
        two.lead(queue).await.unwrap()
            && !three.lead(queue).await.unwrap()
            && !one.lead(queue).await.unwrap()
    );
}
