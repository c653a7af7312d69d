use super::*;
use agent_core::fleet::TaskSpec;
use agent_core::task_transitions::Ending;

/// Time of a lease in seconds.
const LEASE: i64 = 30_000;

fn at(millis: i64) -> BootTime {
    BootTime { boot: "boot".to_owned(), millis }
}

struct Open {
    store: SqliteStore,
    directory: tempfile::TempDir,
}

fn open(ids: &[&str]) -> Open {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("fleet/tasks.sqlite"), lease()).unwrap();
    let tasks: Vec<_> = ids.iter().map(|id| ((*id).to_owned(), TaskSpec::new(*id, "/", 2))).collect();
    store.submit(&tasks, 1, 0, 10).unwrap();
    Open { store, directory }
}

fn lease() -> Duration {
    Duration::from_millis(LEASE.unsigned_abs())
}

fn claim(store: &SqliteStore, from: i64) -> Option<(String, u32)> {
    store.claim(Lane::Submitted, None, "w", &at(from), 1).unwrap().map(|task| (task.id, task.attempt))
}

fn change(store: &SqliteStore, id: &str, from: i64, change: impl Fn(&mut TaskRecord) -> Change) {
    assert!(store.change_all(&[id.to_owned()], &at(from), &|task| Ok(change(task))).unwrap());
}

#[test]
fn b08_a_claim_that_is_not_renewed_is_taken_back_by_any_process() {
    let open = open(&["a"]);
    let claimed = open.store.claim(Lane::Submitted, None, "w", &at(0), 1).unwrap().unwrap();
    assert_eq!((claimed.id.as_str(), claimed.attempt), ("a", 1));
    let other = SqliteStore::open(&open.directory.path().join("fleet/tasks.sqlite"), lease()).unwrap();
    assert_eq!(claim(&other, LEASE - 1), None);
    assert!(open.store.renew(&claimed, &at(LEASE - 1)).unwrap());
    assert_eq!(claim(&other, LEASE + 1), None);
    assert_eq!(claim(&other, 2 * LEASE), Some(("a".to_owned(), 2)));
    assert!(!open.store.renew(&claimed, &at(2 * LEASE)).unwrap());
}

#[test]
fn a_claim_of_another_boot_has_ended() {
    let open = open(&["a"]);
    claim(&open.store, 1_000_000);
    let after = BootTime { boot: "next boot".to_owned(), millis: 1 };
    assert_eq!(open.store.claim(Lane::Submitted, None, "w", &after, 1).unwrap().unwrap().attempt, 2);
}

#[test]
fn a_task_waits_after_a_failed_attempt_and_a_claim_stays_when_something_else_is_written() {
    let open = open(&["a"]);
    claim(&open.store, 0);
    change(&open.store, "a", 10, |task| {
        task.session_id = Some("session".to_owned());
        Change::Write
    });
    assert_eq!(claim(&open.store, LEASE), None);
    change(&open.store, "a", 0, |task| {
        Change::WriteAndWait(task.finish(&Ending::Retry("x".to_owned()), None, 2))
    });
    assert_eq!(claim(&open.store, 1_999), None);
    assert_eq!(claim(&open.store, 2_000), Some(("a".to_owned(), 2)));
}

#[test]
fn the_worker_of_a_cancelled_task_may_be_at_work_until_its_claim_ends() {
    let open = open(&["a"]);
    claim(&open.store, 0);
    change(&open.store, "a", 5, |task| task.cancel(2).map(|()| Change::Write).unwrap());
    let unsettled =
        |millis, until| open.store.select(Selection::Unsettled { until }, &at(millis)).unwrap().len();
    assert_eq!((unsettled(LEASE - 1, 9), unsettled(LEASE + 1, 9), unsettled(LEASE + 1, 1)), (0, 1, 0));
}

#[test]
fn a_task_that_cannot_be_read_is_left_out_and_reported_once() {
    let open = open(&["a", "b"]);
    let broken = "UPDATE task SET record = '{\"new\": 1}' WHERE id = 'a'";
    open.store.connection.borrow().execute(broken, []).unwrap();
    assert_eq!(claim(&open.store, 0), Some(("b".to_owned(), 1)));
    assert_eq!(open.store.select(Selection::All, &at(0)).unwrap().len(), 1);
    let reported = open.store.unreadable.take();
    assert!(reported.len() == 1 && reported[0].starts_with("the task a cannot be read"), "{reported:?}");
    assert_eq!(claim(&open.store, 0), None);
    assert_eq!(open.store.unreadable.take(), Vec::<String>::new());
    change(&open.store, "b", 0, |task| Change::WriteAndWait(task.finish(&Ending::Done(None), None, 2)));
    assert!(!open.store.has_open_tasks(Lane::Submitted).unwrap());
}

#[test]
fn the_database_is_the_users_own() {
    use std::os::unix::fs::PermissionsExt;
    let open = open(&["a"]);
    for name in ["tasks.sqlite", "tasks.sqlite-wal"] {
        let metadata = open.directory.path().join("fleet").join(name).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o77, 0, "{name}");
    }
}

#[test]
fn many_processes_may_open_a_new_database_at_the_same_time() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.sqlite");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| SqliteStore::open(&path, Duration::from_secs(30)).map(drop).unwrap());
            }
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "the files of a test")]
#[test]
fn the_log_of_a_removed_database_is_not_read_into_a_new_one() {
    let open = open(&["a", "b"]);
    let path = open.directory.path().join("fleet/tasks.sqlite");
    std::fs::rename(&path, open.directory.path().join("old")).unwrap();
    assert!(std::fs::metadata(path.with_extension("sqlite-wal")).unwrap().len() > 0);
    let new = SqliteStore::open(&path, lease()).unwrap();
    assert!(new.id != open.store.id && new.select(Selection::All, &at(0)).unwrap().is_empty());
    new.submit(&[("c".to_owned(), TaskSpec::new("c", "/", 2))], 1, 0, 10).unwrap();
    let check =
        new.connection.borrow().query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(check.unwrap(), "ok");
}

#[test]
fn a_change_is_on_the_disk_when_it_is_confirmed() {
    let open = open(&[]);
    let connection = open.store.connection.borrow();
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!((mode.as_str(), synchronous), ("wal", 2), "2 is `full`");
}

#[test]
fn a_full_queue_takes_nothing() {
    let open = open(&["a"]);
    let tasks = ["b", "c"].map(|id| (id.to_owned(), TaskSpec::new(id, "/", 2)));
    let refused = open.store.submit(&tasks, 1, 0, 2);
    assert!(matches!(refused, Err(QueueError::Full(2))), "{refused:?}");
    assert_eq!(open.store.select(Selection::All, &at(0)).unwrap().len(), 1);
    open.store.submit(&tasks[..1], 1, 0, 2).unwrap();
}
