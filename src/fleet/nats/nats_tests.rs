use super::*;
use crate::leader;
use crate::nats::connection::Credentials;
use crate::nats_server;
use agent_core::fleet::Priority;
use agent_core::hub::Lane;
use agent_core::run_result::RunResult;
use agent_core::task_transitions::Ending;

async fn open(url: &str, lease: Duration) -> Result<NatsStore, QueueError> {
    let server = NatsServer {
        url: url.to_owned(),
        credentials: Credentials::None,
        ca_file: None,
        insecure: false,
        prefix: "AGENT".to_owned(),
        replicas: 1,
    };
    NatsStore::open(&server, lease, Rc::new(Clock::new())).await
}

fn task(id: &str, priority: Priority) -> TaskRecord {
    TaskRecord::new(id, 1, &TaskSpec { priority, ..TaskSpec::new(id, "/", 2) }, 1)
}

/// Opens a queue with these tasks on a server of its own.
async fn with_tasks(ids: &[&str], lease: Duration) -> Option<(nats_server::NatsServer, NatsStore)> {
    let server = nats_server::NatsServer::start()?;
    let store = Box::pin(open(&server.url(), lease)).await.unwrap();
    let tasks: Vec<_> = ids.iter().map(|id| ((*id).to_owned(), TaskSpec::new(*id, "/", 2))).collect();
    Box::pin(store.submit(&tasks, 1, 10)).await.unwrap();
    Some((server, store))
}

/// Claims the next task, as soon as there is one.
async fn claim_at_last(store: &NatsStore, worker: &str) -> TaskRecord {
    loop {
        // A server that was restarted is away for a moment.
        if let Ok(Some(task)) = store.claim(Lane::Submitted, worker, 2).await {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn finish(store: &NatsStore, id: &str) {
    let done = |task: &mut TaskRecord| Ok(Change::WriteAndWait(task.finish(&Ending::Done(None), None, 2)));
    assert!(store.change(id, 2, &done).await.unwrap());
}

#[tokio::test]
async fn b08_the_task_of_a_worker_that_is_no_longer_alive_is_taken_back() {
    let Some((server, store)) = with_tasks(&["a"], Duration::from_secs(1)).await else { return };
    let first = store.claim(Lane::Submitted, "first", 1).await.unwrap().unwrap();
    let other = open(&server.url(), Duration::from_secs(1)).await.unwrap();
    let second = claim_at_last(&other, "second").await;
    assert_eq!((second.attempt, second.failed_attempts), (2, 1));
    assert_eq!(second.cause.as_deref(), Some("the worker first has ended without a result"));
    assert!(!store.renew(&first).await.unwrap());
    assert!(other.renew(&second).await.unwrap());
}

#[tokio::test]
async fn what_a_killed_server_has_confirmed_is_there_when_it_starts_again() {
    let Some((mut server, store)) = with_tasks(&["a", "b"], Duration::from_secs(30)).await else { return };
    let first = store.claim(Lane::Submitted, "w", 1).await.unwrap().unwrap();
    server.kill();
    assert!(matches!(store.existing("a").await, Err(QueueError::Away(_))));
    server.restart();
    let second = claim_at_last(&store, "w").await;
    assert_eq!((first.id.as_str(), second.id.as_str()), ("a", "b"));
    finish(&store, "a").await;
    finish(&store, "b").await;
    assert!(!store.has_open_tasks(Lane::Submitted).await.unwrap());
}

#[tokio::test]
async fn the_end_of_a_task_hides_no_message_of_another() {
    let Some((_server, store)) = with_tasks(&["a", "b", "c", "d"], Duration::from_secs(30)).await else {
        return;
    };
    assert_eq!(store.claim(Lane::Submitted, "w", 1).await.unwrap().unwrap().id, "a");
    finish(&store, "a").await;
    let settled = |task: &mut TaskRecord| {
        task.settle();
        Ok(Change::Write)
    };
    store.change_all(&["a".to_owned()], 2, &settled).await.unwrap();
    let cancelled = |task: &mut TaskRecord| Ok(task.cancel(3).map(|()| Change::Write)?);
    store.change_all(&["b".to_owned()], 3, &cancelled).await.unwrap();
    for id in ["c", "d"] {
        assert_eq!(store.claim(Lane::Submitted, "w", 3).await.unwrap().unwrap().id, id);
    }
}

#[tokio::test]
async fn a_message_that_is_missing_or_not_delivered_is_published_again() {
    let Some((_server, store)) = with_tasks(&["missing", "held"], Duration::from_secs(30)).await else {
        return;
    };
    let subject = store.buckets.subject(&task("missing", Priority::Normal));
    store.buckets.hints.purge().filter(subject).await.unwrap();
    // Somebody has taken the message, and makes no attempt.
    assert!(store.hints.next(&store.buckets, Lane::Submitted).await.unwrap().is_some());
    assert_eq!(store.claim(Lane::Submitted, "w", 1).await.unwrap(), None);
    store.sweep(1).await.unwrap();
    for id in ["missing", "held"] {
        assert_eq!(store.claim(Lane::Submitted, "w", 1).await.unwrap().unwrap().id, id);
    }
}

#[tokio::test]
async fn a_claim_whose_confirmation_was_lost_is_given_back_by_its_worker() {
    let Some((_server, store)) = with_tasks(&["a"], Duration::from_secs(30)).await else { return };
    let claimed = store.claim(Lane::Submitted, "w", 1).await.unwrap().unwrap();
    store.doubt(&claimed, "w");
    let again = claim_at_last(&store, "w").await;
    assert_eq!((again.attempt, again.failed_attempts), (2, 0));
}

#[tokio::test]
async fn a_second_submission_publishes_what_an_interrupted_one_did_not() {
    let Some((_server, store)) = with_tasks(&["a"], Duration::from_secs(30)).await else { return };
    store.buckets.hints.purge().await.unwrap();
    store.submit(&[("a".to_owned(), TaskSpec::new("a", "/", 2))], 1, 10).await.unwrap();
    assert_eq!(store.claim(Lane::Submitted, "w", 1).await.unwrap().unwrap().id, "a");
}

#[tokio::test]
async fn only_the_first_message_of_a_task_has_an_id_by_which_the_server_drops_another() {
    let Some((_server, store)) = with_tasks(&["a"], Duration::from_secs(30)).await else { return };
    let task = store.buckets.read("a").await.unwrap().unwrap().0.task;
    let id = async || {
        let subject = store.buckets.subject(&task);
        let message = store.buckets.hints.get_last_raw_message_by_subject(&subject).await.unwrap();
        message.headers.get("Nats-Msg-Id").map(ToString::to_string)
    };
    let first = id().await;
    assert_eq!(first, Some(format!("a-{}-0", task.number)));
    store.buckets.publish_again(&[&task]).await.unwrap();
    assert_eq!(id().await, None);
    store.buckets.remove_hint(&task).await.unwrap();
    store.buckets.publish_new(&[&task]).await.unwrap();
    let subject = store.buckets.subject(&task);
    assert!(store.buckets.hints.get_last_raw_message_by_subject(&subject).await.is_err());
}

#[tokio::test]
async fn b19_the_leader_is_a_lease_that_the_server_removes() {
    let Some((_server, store)) = with_tasks(&[], Duration::from_secs(30)).await else { return };
    assert!(store.write_value(leader::KEY, "x".to_owned(), None).await.unwrap());
    assert_eq!(store.value(leader::KEY).await.unwrap().unwrap().0, "x");
    assert!(store.buckets.leases.get(leader::KEY).await.unwrap().is_some());
    assert!(store.buckets.values.get(leader::KEY).await.unwrap().is_none());
}

#[tokio::test]
async fn a_mark_that_is_made_again_meanwhile_stays() {
    let Some((_server, store)) = with_tasks(&["a"], Duration::from_secs(30)).await else { return };
    let mark = store.buckets.open_mark("a").await.unwrap().unwrap();
    store.buckets.mark_open("a").await.unwrap();
    store.buckets.remove_mark(&mark).await.unwrap();
    assert_eq!(Vec::from_iter(store.buckets.open_ids().await.unwrap()), ["a"]);
}

#[tokio::test]
async fn a_record_with_the_id_of_others_removes_none_of_them() {
    let Some((_server, store)) = with_tasks(&["a"], Duration::from_secs(30)).await else { return };
    let mut record = Stored::new(task("a", Priority::Normal));
    (record.task.id, record.task.state, record.task.changed_at) = (">".to_owned(), TaskState::Failed, 0);
    store.buckets.records.put("evil", serde_json::to_vec(&record).unwrap().into()).await.unwrap();
    store.clean(4, 4).await.unwrap();
    assert_eq!(store.select(Selection::All).await.unwrap().len(), 1);
    assert!(store.take_unreadable()[0].contains("it has the id of another task"));
}

#[tokio::test]
async fn records_and_messages_that_cannot_be_read_stop_no_worker() {
    let Some((_server, store)) = with_tasks(&["a", "b"], Duration::from_secs(30)).await else { return };
    store.buckets.records.put("a", "no record".into()).await.unwrap();
    for (number, payload) in ["", "a b", "../x", "gone"].into_iter().enumerate() {
        let subject = store.buckets.subject(&task(&format!("x{number}"), Priority::High));
        store.buckets.context.publish(subject, payload.into()).await.unwrap().await.unwrap();
    }
    assert_eq!(store.claim(Lane::Submitted, "w", 1).await.unwrap().unwrap().id, "b");
    assert_eq!(store.select(Selection::All).await.unwrap().len(), 1);
    let reported = store.take_unreadable();
    assert!(reported.len() == 1 && reported[0].starts_with("the task a cannot be read"), "{reported:?}");
    let mut stored = store.existing("b").await.unwrap().0;
    stored.task.worker = Some("no name\n".to_owned());
    assert!(!store.buckets.is_alive(stored.task.worker.as_deref()).await.unwrap());
}

#[tokio::test]
async fn a_task_whose_document_is_gone_can_be_shown() {
    let Some((_server, store)) = with_tasks(&["a"], Duration::from_secs(30)).await else { return };
    let with_result = |task: &mut TaskRecord| {
        task.claim("w", 1);
        Ok(Change::WriteAndWait(task.finish(&Ending::Done(None), Some(RunResult::default()), 2)))
    };
    assert!(store.change("a", 2, &with_result).await.unwrap());
    assert!(store.get("a").await.unwrap().result.is_some());
    let stored = store.existing("a").await.unwrap().0;
    store
        .buckets
        .results
        .delete("a/".to_owned() + &format!("{}-1/result.json", stored.task.number))
        .await
        .unwrap();
    assert_eq!(store.get("a").await.unwrap().result, None);
}

#[tokio::test]
async fn a_bucket_of_leases_that_never_end_is_refused() {
    let Some(server) = nats_server::NatsServer::start() else { return };
    let error = open(&server.url(), Duration::ZERO).await.err().unwrap();
    assert!(error.to_string().contains("AGENT_LEASE has a maximum age of 0 s"), "{error}");
}

#[tokio::test]
async fn old_tasks_are_removed_and_open_ones_known_again_when_all_records_are_looked_at() {
    let Some((_server, store)) = with_tasks(&["a", "b", "c"], Duration::from_secs(30)).await else { return };
    let cancelled = |task: &mut TaskRecord| Ok(task.cancel(3).map(|()| Change::Write)?);
    store.change_all(&["a".to_owned()], 3, &cancelled).await.unwrap();
    finish(&store, "b").await;
    let buckets = &store.buckets;
    buckets.remove_mark(&buckets.open_mark("c").await.unwrap().unwrap()).await.unwrap();
    buckets.mark_open("gone").await.unwrap();
    let later = buckets.open_mark("gone").await.unwrap().unwrap().made_at + 3_601;
    store.clean(later, 4).await.unwrap();
    let ids = |tasks: Vec<TaskRecord>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
    // The branch of `b` is missing.
    assert_eq!(ids(store.select(Selection::All).await.unwrap()), ["b", "c"]);
    assert_eq!(Vec::from_iter(buckets.open_ids().await.unwrap()), ["b", "c"]);
    let settled = |task: &mut TaskRecord| {
        task.settled = true;
        Ok(Change::Write)
    };
    store.change_all(&["c".to_owned()], 5, &cancelled).await.unwrap();
    store.change_all(&["b".to_owned(), "c".to_owned()], 5, &settled).await.unwrap();
    assert!(buckets.open_ids().await.unwrap().is_empty());
    let again = |task: &mut TaskRecord| Ok(task.retry(5).map(|()| Change::Write)?);
    store.change_all(&["c".to_owned()], 5, &again).await.unwrap();
    assert_eq!(ids(store.select(Selection::InState(TaskState::Queued)).await.unwrap()), ["c"]);
    store.clean(later, 4).await.unwrap();
    assert_eq!(Vec::from_iter(buckets.open_ids().await.unwrap()), ["c"]);
}
