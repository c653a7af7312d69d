use super::*;
use crate::core::failure::{Failure, FailureKind};
use crate::core::fleet::Priority;
use crate::core::stop_reason::Status;

fn spec(prompt: &str, priority: Priority) -> TaskSpec {
    TaskSpec {
        prompt: prompt.to_owned(),
        dir: "/".to_owned(),
        priority,
        max_attempts: 2,
        agent: None,
        model: None,
        mode: None,
        max_steps: None,
        timeout: None,
        budget: None,
        checks: Vec::new(),
    }
}

fn at(millis: i64) -> BootTime {
    BootTime { boot: "boot".to_owned(), millis }
}

struct Open {
    queue: Queue,
    directory: tempfile::TempDir,
}

fn open(ids: &[(&str, Priority)]) -> Open {
    let directory = tempfile::tempdir().unwrap();
    let mut queue = Queue::open(&directory.path().join("fleet/tasks.sqlite")).unwrap();
    let tasks: Vec<_> = ids.iter().map(|(id, priority)| ((*id).to_owned(), spec(id, *priority))).collect();
    queue.submit(&tasks, 1).unwrap();
    Open { queue, directory }
}

fn key(task: u64, attempt: u32) -> AttemptKey {
    AttemptKey { task, attempt }
}

fn finish(queue: &Queue, key: AttemptKey, ending: &Ending) -> bool {
    queue.finish(key, ending, None, (&at(0), 2)).unwrap()
}

fn ids(id: &str) -> [String; 1] {
    [id.to_owned()]
}

fn claim(queue: &mut Queue, from: i64) -> Option<(String, u32)> {
    let claimed = queue.claim("w", (&at(from), &at(from + 30)), 1).unwrap();
    claimed.map(|task| (task.id, task.attempt))
}

#[test]
fn b10_the_priority_then_the_order_of_submission_decide() {
    let tasks =
        [("low", Priority::Low), ("a", Priority::Normal), ("b", Priority::Normal), ("high", Priority::High)];
    let mut open = open(&tasks);
    let order: Vec<String> = (0..4).filter_map(|_| claim(&mut open.queue, 0)).map(|(id, _)| id).collect();
    assert_eq!(order, ["high", "a", "b", "low"]);
    assert_eq!(claim(&mut open.queue, 0), None);
}

#[test]
fn b08_a_claim_is_exclusive_and_one_that_is_not_renewed_is_taken_back() {
    let mut open = open(&[("a", Priority::Normal)]);
    assert_eq!(claim(&mut open.queue, 0), Some(("a".to_owned(), 1)));
    let mut other = Queue::open(&open.directory.path().join("fleet/tasks.sqlite")).unwrap();
    assert_eq!(claim(&mut other, 20), None);
    assert!(open.queue.renew(key(1, 1), &at(50)).unwrap());
    assert_eq!(claim(&mut other, 40), None);
    assert_eq!(claim(&mut other, 51), Some(("a".to_owned(), 2)));
    // The task belongs to the second attempt now: no call of the first one changes it.
    assert!(!open.queue.renew(key(1, 1), &at(99)).unwrap());
    let done = Ending::Done(Some("commit".to_owned()));
    assert!(!finish(&open.queue, key(1, 1), &done));
    open.queue.give_back(key(1, 1), 2).unwrap();
    assert_eq!(open.queue.get("a").unwrap().state, TaskState::Claimed);
    assert!(finish(&other, key(1, 2), &done));
    let task = open.queue.get("a").unwrap();
    assert_eq!((task.commit.as_deref(), task.branch), (Some("commit"), None));
    open.queue.set_settled(key(1, 2)).unwrap();
    assert_eq!(open.queue.get("a").unwrap().branch.as_deref(), Some("agent/task/a"));
}

#[test]
fn an_attempt_of_a_removed_task_is_none_of_a_later_task_with_its_id() {
    let mut open = open(&[("a", Priority::Normal)]);
    claim(&mut open.queue, 0);
    open.queue.cancel(&ids("a"), 2).unwrap();
    open.queue.remove(&ids("a")).unwrap();
    open.queue.submit(&[("a".to_owned(), spec("other", Priority::Normal))], 3).unwrap();
    assert_eq!(claim(&mut open.queue, 0), Some(("a".to_owned(), 1)));
    assert!(!open.queue.renew(key(1, 1), &at(99)).unwrap());
    assert!(!finish(&open.queue, key(1, 1), &Ending::Done(None)));
    assert!(finish(&open.queue, key(2, 1), &Ending::Done(None)));
}

#[test]
fn a_claim_of_another_boot_has_ended() {
    let mut open = open(&[("a", Priority::Normal)]);
    claim(&mut open.queue, 1_000_000);
    let after = BootTime { boot: "next boot".to_owned(), millis: 1 };
    assert_eq!(open.queue.claim("w", (&after, &after), 1).unwrap().unwrap().attempt, 2);
}

#[test]
fn a_task_whose_attempts_all_fail_is_dead_and_can_be_retried() {
    let mut open = open(&[("a", Priority::Normal)]);
    claim(&mut open.queue, 0);
    assert!(finish(&open.queue, key(1, 1), &Ending::Retry("server".to_owned())));
    assert_eq!(open.queue.get("a").unwrap().state, TaskState::Queued);
    // Two seconds after the failure.
    assert_eq!(claim(&mut open.queue, 1_999), None);
    assert_eq!(claim(&mut open.queue, 2_000), Some(("a".to_owned(), 2)));
    open.queue.give_back(key(1, 2), 2).unwrap();
    assert_eq!(claim(&mut open.queue, 0), Some(("a".to_owned(), 3)));
    assert_eq!(claim(&mut open.queue, 31), None);
    let dead = open.queue.get("a").unwrap();
    assert_eq!((dead.state, dead.attempt, dead.failed_attempts), (TaskState::Dead, 3, 2));
    assert_eq!(dead.cause.as_deref(), Some("the worker w has ended without a result"));
    assert!(!open.queue.has_open_tasks().unwrap());
    open.queue.retry(&ids("a"), 3).unwrap();
    assert_eq!(claim(&mut open.queue, 0), Some(("a".to_owned(), 4)));
}

#[test]
fn the_same_id_is_the_same_task_or_refused_and_then_nothing_is_added() {
    let mut open = open(&[("a", Priority::Normal)]);
    open.queue.submit(&[("a".to_owned(), spec("a", Priority::Normal))], 2).unwrap();
    let tasks =
        [("new".to_owned(), spec("x", Priority::Normal)), ("a".to_owned(), spec("y", Priority::Normal))];
    assert_eq!(open.queue.submit(&tasks, 2), Err(QueueError::Different("a".to_owned())));
    assert_eq!(open.queue.list(None).unwrap().len(), 1);
    assert_eq!(open.queue.get("new").unwrap_err(), QueueError::Unknown("new".to_owned()));
}

#[test]
fn a_cancelled_task_is_no_longer_its_workers_and_changes_of_several_are_all_or_none() {
    let mut open = open(&[("a", Priority::Normal), ("b", Priority::Normal)]);
    claim(&mut open.queue, 0);
    assert!(matches!(open.queue.remove(&ids("a")), Err(QueueError::State(_))));
    let both = ["b", "missing"].map(str::to_owned);
    assert_eq!(open.queue.cancel(&both, 2), Err(QueueError::Unknown("missing".to_owned())));
    assert_eq!(
        open.queue.states(&["a", "b"].map(str::to_owned)).unwrap(),
        [TaskState::Claimed, TaskState::Queued]
    );
    open.queue.cancel(&ids("a"), 2).unwrap();
    assert!(matches!(open.queue.cancel(&ids("a"), 2), Err(QueueError::State(_))));
    assert!(!open.queue.renew(key(1, 1), &at(99)).unwrap());
    // Its worker may be at work until its claim ends.
    assert_eq!(open.queue.unsettled(&at(29), 9).unwrap().len(), 0);
    assert_eq!(open.queue.unsettled(&at(31), 9).unwrap().len(), 1);
    assert_eq!(open.queue.unsettled(&at(31), 1).unwrap().len(), 0);
}

#[test]
fn ended_tasks_are_removed_after_their_time_unless_a_branch_is_missing() {
    let mut open = open(&[("a", Priority::Normal), ("b", Priority::Normal), ("c", Priority::Normal)]);
    claim(&mut open.queue, 0);
    finish(&open.queue, key(1, 1), &Ending::Done(Some("commit".to_owned())));
    open.queue.cancel(&ids("b"), 2).unwrap();
    open.queue.submit(&[], 2 + RETENTION.as_secs()).unwrap();
    assert_eq!(open.queue.list(None).unwrap().len(), 3);
    open.queue.submit(&[], 3 + RETENTION.as_secs()).unwrap();
    assert_eq!(open.queue.list(None).unwrap().len(), 2);
    open.queue.set_settled(key(1, 1)).unwrap();
    open.queue.submit(&[], 3 + RETENTION.as_secs()).unwrap();
    assert_eq!(open.queue.list(None).unwrap().len(), 1);
    assert_eq!(open.queue.list(Some(TaskState::Queued)).unwrap()[0].id, "c");
}

#[test]
fn a_record_is_never_too_long() {
    let mut open = open(&[("a", Priority::Normal), ("b", Priority::Normal)]);
    let long = "x".repeat(MAX_RESULT_BYTES);
    let result = RunResult { status: Status::Success, output: long.as_str().into(), ..RunResult::default() };
    claim(&mut open.queue, 0);
    open.queue.finish(key(1, 1), &Ending::Done(None), Some(&result), (&at(0), 2)).unwrap();
    assert_eq!(open.queue.get("a").unwrap().result.unwrap().output.text(), "");
    claim(&mut open.queue, 0);
    let error = Failure { kind: FailureKind::Internal, message: long, retryable: false };
    let result = RunResult { error: Some(error), ..result };
    open.queue.finish(key(2, 1), &Ending::Done(None), Some(&result), (&at(0), 2)).unwrap();
    assert_eq!(open.queue.get("b").unwrap().result, None);
    let task = ("c".to_owned(), spec(&"x".repeat(MAX_TASK_BYTES), Priority::Normal));
    assert_eq!(open.queue.submit(&[task], 2), Err(QueueError::TooLong("c".to_owned(), MAX_TASK_BYTES)));
}

#[test]
fn the_database_is_the_users_own_and_a_queue_has_an_absolute_path() {
    use std::os::unix::fs::PermissionsExt;
    let open = open(&[("a", Priority::Normal)]);
    for name in ["tasks.sqlite", "tasks.sqlite-wal"] {
        let metadata = open.directory.path().join("fleet").join(name).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o77, 0, "{name}");
    }
    let file = |url| queue_file(url, Path::new("/state"));
    assert_eq!(file(None), file(Some("sqlite:")));
    assert_eq!(file(Some("sqlite:///a/b")), Ok(PathBuf::from("/a/b")));
    assert_eq!(file(Some("sqlite:/a/b")), Ok(PathBuf::from("/a/b")));
    assert!(file(Some("sqlite:a")).is_err() && file(Some("nats://x")).is_err());
}
