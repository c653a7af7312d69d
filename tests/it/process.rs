//! Children through the real launcher: limits, output, and that nothing outlives its command or the agent.
#![expect(clippy::disallowed_methods, reason = "these tests start, watch and kill processes themselves")]

use crate::support::run::{PROGRAM, program};
use agent_core::secret::Secret;
use agent_process::barrier::Barrier;
use agent_process::capture::{HEAD_BYTES, StoredOutput, TAIL_BYTES};
use agent_process::environment;
use agent_process::launch::{CommandOutcome, CommandSpec, ExitReason, Launcher, OutputOptions, Tier};
use agent_process::limits::{CommandLimits, ExceededLimit};
use agent_process::recent_output::RecentOutput;
use agent_process::sandbox::confinement::Confinement;
use agent_process::sandbox::settings::{SandboxSettings, WorkspaceAccess};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The ways to hold a tree that this kernel allows: a subreaper always, a namespace on most.
fn tiers() -> &'static [Tier] {
    let launcher = Launcher::new(BTreeMap::new(), Vec::new())
        .with_executable(program().into())
        .with_detected_tier()
        .unwrap();
    let has_namespaces = launcher.tier() == Tier::Namespace;
    if has_namespaces { &[Tier::Namespace, Tier::Subreaper] } else { &[Tier::Subreaper] }
}

/// A time limit that no command of these tests reaches unless it is to.
const AMPLE: Duration = Duration::from_mins(1);

/// What the contract allows between an end and the death of everything.
const ALLOWED: Duration = Duration::from_secs(1);

/// Tells a stand-in agent what to do.
const STAND_IN: &str = "AGENT_TEST_STAND_IN";

fn launcher(tier: Tier) -> Launcher {
    let full = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    let env = environment::child_environment(&full, &BTreeMap::new(), Path::new("/nowhere"), &[]);
    Launcher::new(env, vec![Secret::new("sk-very-secret")]).with_executable(program().into()).with_tier(tier)
}

fn script(text: &str) -> CommandSpec {
    CommandSpec {
        argv: ["/bin/sh", "-c", text].map(str::to_owned).to_vec(),
        cwd: "/".into(),
        env: BTreeMap::new(),
        stdin: Vec::new(),
        timeout: AMPLE,
    }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn launch(tier: Tier, spec: CommandSpec) -> CommandOutcome {
    block(launcher(tier).launch(spec, &CancellationToken::new())).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A number of seconds (five minutes, and nothing for long after a failure) that no other process sleeps, so that
/// `/proc` tells our sleepers from others.
fn unique_seconds() -> String {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    format!("300.{}{nanos:09}", std::process::id())
}

fn count_sleepers(seconds: &str) -> usize {
    sleepers(seconds).count()
}

/// Their directories in `/proc`.
fn sleepers(seconds: &str) -> impl Iterator<Item = PathBuf> {
    let wanted = format!("sleep\0{seconds}\0");
    let places = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    places
        .filter(move |place| std::fs::read(place.join("cmdline")).is_ok_and(|line| line == wanted.as_bytes()))
}

/// Waits until as many processes as `wanted` sleep for `seconds`; how long that took, or a failure.
fn wait_for_sleepers(seconds: &str, wanted: usize) -> Duration {
    let begun = Instant::now();
    while count_sleepers(seconds) != wanted {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{} sleepers, not {wanted}",
            count_sleepers(seconds)
        );
        std::thread::yield_now();
    }
    begun.elapsed()
}

/// A command with all that tries to stay: a child that holds the pipe, one in another session, an orphan in a third, a
/// daemon without descriptors, one that hears no hangup, one that hears no signal, and one that is stopped.
fn busy_tree(seconds: &str) -> String {
    format!("{} wait", stayers(seconds))
}

fn stayers(seconds: &str) -> String {
    format!(
        "sleep {seconds} & setsid sleep {seconds} & (setsid sleep {seconds} >/dev/null 2>&1 &) ; \
         (setsid sh -c 'sleep {seconds} <&- >&- 2>&- &' &) ; nohup sleep {seconds} >/dev/null 2>&1 & \
         (trap '' HUP INT QUIT TERM; exec sleep {seconds}) & sleep {seconds} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!;"
    )
}

/// How many sleepers that makes.
const STAYERS: usize = 7;

#[test]
fn the_exit_code_both_streams_and_the_signal_are_told() {
    for &tier in tiers() {
        let exit = launch(tier, script("echo out; echo err >&2; exit 3"));
        assert_eq!(exit.reason, ExitReason::Code(3));
        assert_eq!(
            (text(&exit.stdout.head), text(&exit.stderr.head)),
            ("out\n".to_owned(), "err\n".to_owned())
        );
        assert_eq!(launch(tier, script("kill -TERM $$")).reason, ExitReason::Signal(15));
    }
}

#[test]
fn a_program_that_is_not_there_is_a_launch_error() {
    for &tier in tiers() {
        let spec = CommandSpec { argv: vec!["/no/such/program".to_owned()], ..script("") };
        let error = block(launcher(tier).launch(spec, &CancellationToken::new())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot start /no/such/program: No such file or directory (os error 2)"
        );
    }
}

#[test]
fn t15_a_timeout_kills_children_and_setsid_escapees() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let exit =
            launch(tier, CommandSpec { timeout: Duration::from_millis(500), ..script(&busy_tree(&seconds)) });
        assert_eq!((exit.reason, count_sleepers(&seconds)), (ExitReason::TimedOut, 0));
        assert!(exit.duration < Duration::from_millis(500) + ALLOWED);
    }
}

#[test]
fn class_44_what_a_finished_command_leaves_behind_dies_with_it() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let exit = launch(tier, script(&format!("{} exit 0", stayers(&seconds))));
        assert_eq!((exit.reason, count_sleepers(&seconds)), (ExitReason::Code(0), 0));
        assert!(exit.duration < ALLOWED, "a grandchild that holds the pipe was waited for");
    }
}

#[test]
fn a_cancelled_command_ends_with_its_tree() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let (launcher, cancel) = (launcher(tier), CancellationToken::new());
        let watcher = {
            let (seconds, cancel) = (seconds.clone(), cancel.clone());
            std::thread::spawn(move || {
                wait_for_sleepers(&seconds, STAYERS);
                cancel.cancel();
                Instant::now()
            })
        };
        let exit = block(launcher.launch(script(&busy_tree(&seconds)), &cancel)).unwrap();
        assert_eq!((exit.reason, count_sleepers(&seconds)), (ExitReason::Cancelled, 0));
        assert!(watcher.join().unwrap().elapsed() < ALLOWED);
    }
}

#[test]
fn a_pipe_that_a_stranger_holds_open_is_not_waited_for() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let (launcher, cancel) = (launcher(tier), CancellationToken::new());
        let stranger = {
            let (seconds, cancel) = (seconds.clone(), cancel.clone());
            std::thread::spawn(move || {
                wait_for_sleepers(&seconds, 1);
                let pipe = sleepers(&seconds).next().unwrap().join("fd/1");
                let held = std::fs::File::options().write(true).open(pipe).unwrap();
                cancel.cancel();
                (held, Instant::now())
            })
        };
        let exit = block(launcher.launch(script(&format!("echo out; sleep {seconds}")), &cancel)).unwrap();
        let (_held, cancelled) = stranger.join().unwrap();
        assert_eq!((exit.reason, text(&exit.stdout.head)), (ExitReason::Cancelled, "out\n".to_owned()));
        assert!(cancelled.elapsed() < ALLOWED, "{tier:?}: {:?}", cancelled.elapsed());
    }
}

#[test]
fn everything_running_can_be_ended_from_another_thread() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let launcher = launcher(tier);
        let running = launcher.registry();
        let killer = {
            let seconds = seconds.clone();
            std::thread::spawn(move || {
                wait_for_sleepers(&seconds, STAYERS);
                running.kill_all();
                wait_for_sleepers(&seconds, 0)
            })
        };
        let result = block(launcher.launch(script(&busy_tree(&seconds)), &CancellationToken::new()));
        assert!(result.is_err(), "{result:?}");
        assert!(killer.join().unwrap() < ALLOWED);
    }
}

#[test]
fn a_command_begins_when_what_comes_before_it_is_done_and_never_where_that_fails() {
    let place = tempfile::tempdir().unwrap();
    let marker = place.path().join("marker");
    for tier in tiers().iter().copied().chain([Tier::Group]) {
        let mark = script(&format!("echo x > '{}'", marker.display()));
        let launch = |barrier: Barrier, cancel: CancellationToken| {
            let (launcher, mark) = (launcher(tier).with_barrier(barrier), mark.clone());
            async move { launcher.launch(mark, &cancel).await }
        };
        let (lift, barrier) = Barrier::new();
        drop(lift);
        let failed = block(launch(barrier, CancellationToken::new())).unwrap_err();
        assert!(failed.to_string().contains("the preparation for commands failed"), "{failed}");

        let (held, barrier) = Barrier::new();
        let cancel = CancellationToken::new();
        let given_up = async {
            let (exit, ()) = tokio::join!(launch(barrier, cancel.clone()), async { cancel.cancel() });
            exit.map(|exit| exit.reason)
        };
        assert!(matches!(block(given_up), Ok(ExitReason::Cancelled)), "{tier:?}");
        assert!(!marker.exists(), "{tier:?}");
        drop(held);

        let (lift, barrier) = Barrier::new();
        let begun =
            async { tokio::join!(launch(barrier, CancellationToken::new()), async { lift.release() }).0 };
        assert_eq!(block(begun).unwrap().reason, ExitReason::Code(0), "{tier:?}");
        std::fs::remove_file(&marker).unwrap();
    }
}

/// A launcher that confines commands to the directory `workspace` of `place`.
fn confined(place: &Path) -> Launcher {
    let below = |name: &str| place.join(name);
    let settings = SandboxSettings {
        access: WorkspaceAccess::Write,
        workspace: below("workspace"),
        home: None,
        variables: BTreeMap::new(),
        writable: Vec::new(),
        hidden: Vec::new(),
        trusted: Vec::new(),
        own_configuration: Vec::new(),
        protected: Vec::new(),
        sensitive: Vec::new(),
        network: false,
        has_proxy: false,
        caches: below("caches"),
        temporary: below("tmp"),
        quarantine: below("quarantine"),
    };
    launcher(Tier::Subreaper).with_confinement(Confinement::new(settings)).with_detected_tier().unwrap()
}

#[test]
fn what_a_person_changes_after_a_command_that_never_began_is_not_put_back() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let envrc = root.join("workspace/.envrc");
    std::fs::create_dir_all(root.join("workspace")).unwrap();
    let launcher = confined(&root);
    let spec = CommandSpec { cwd: root.join("workspace"), ..script("true") };
    let (lift, barrier) = Barrier::new();
    drop(lift);
    let never = launcher.clone().with_barrier(barrier);
    block(never.launch(spec.clone(), &CancellationToken::new())).unwrap_err();
    let run = || block(launcher.launch(spec.clone(), &CancellationToken::new())).unwrap();
    run();
    std::fs::write(&envrc, "export A=1\n").unwrap();
    let exit = run();
    assert_eq!(
        (exit.reason, exit.protected_changes.len()),
        (ExitReason::Code(0), 0),
        "{:?}",
        exit.protected_changes
    );
    assert_eq!(std::fs::read_to_string(&envrc).unwrap(), "export A=1\n");
}

#[test]
fn a_dropped_launch_ends_its_tree() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let (launcher, cancel) = (launcher(tier), CancellationToken::new());
        block(async {
            let launch = launcher.launch(script(&busy_tree(&seconds)), &cancel);
            let started = async {
                while count_sleepers(&seconds) != STAYERS {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! { ended = launch => panic!("it ended by itself: {ended:?}"), () = started => {} }
        });
        assert!(wait_for_sleepers(&seconds, 0) < ALLOWED);
    }
}

/// How a stand-in agent ends.
const DEATHS: [&str; 3] = ["killed", "panics", "aborts"];

/// Not a test: an agent that launches [`busy_tree`] and waits to be killed, or panics, or panics without unwinding.
#[test]
fn stand_in_agent() {
    let Ok(order) = std::env::var(STAND_IN) else { return };
    let [tier, seconds, death] = order.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let tier = if tier == "Namespace" { Tier::Namespace } else { Tier::Subreaper };
    let (launcher, cancel) = (launcher(tier), CancellationToken::new());
    block(async {
        let launch = launcher.launch(script(&busy_tree(seconds)), &cancel);
        let doom = async {
            while death == "killed" || count_sleepers(seconds) != STAYERS {
                tokio::task::yield_now().await;
            }
            die(death);
        };
        tokio::join!(launch, doom)
    })
    .0
    .unwrap();
}

fn die(death: &str) {
    if death == "aborts" {
        std::process::abort();
    }
    panic!("a bug of the agent");
}

#[test]
fn class_44_neither_kill_9_nor_a_panic_of_the_agent_leaves_anything_for_a_second() {
    for (&tier, death) in tiers().iter().flat_map(|tier| DEATHS.map(|death| (tier, death))) {
        let seconds = unique_seconds();
        let mut agent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::stand_in_agent"])
            .env(STAND_IN, format!("{tier:?} {seconds} {death}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut children = Vec::new();
        if death == "killed" {
            wait_for_sleepers(&seconds, STAYERS);
            children = children_of(agent.id());
            assert!(!children.is_empty(), "the fork server at least");
            agent.kill().unwrap();
        }
        assert!(!agent.wait().unwrap().success());
        assert!(wait_for_sleepers(&seconds, 0) < ALLOWED, "{tier:?} {death}");
        let begun = Instant::now();
        while children.iter().any(|child| parent_of(*child).is_some()) {
            assert!(begun.elapsed() < ALLOWED, "{tier:?}");
            std::thread::yield_now();
        }
    }
}

/// The parent of a process that lives.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    fields.next().filter(|state| *state != "Z")?;
    fields.next()?.parse().ok()
}

fn children_of(parent: u32) -> Vec<u32> {
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

#[test]
fn guards_are_split_off_one_process_that_is_replaced_when_it_is_killed_and_ends_with_the_run() {
    let launcher = launcher(Tier::Subreaper);
    let server = || {
        let above_the_guard = script(r"sed -n 's/^PPid:\t//p' /proc/$PPID/status");
        let exit = block(launcher.launch(above_the_guard, &CancellationToken::new())).unwrap();
        text(&exit.stdout.head).trim().parse::<u32>().unwrap()
    };
    let first = server();
    assert_eq!(server(), first);
    let pid = rustix::process::Pid::from_raw(first.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    while parent_of(first).is_some() {
        std::thread::yield_now();
    }
    let second = server();
    assert_ne!(second, first);
    drop(launcher);
    assert!(!Path::new(&format!("/proc/{second}")).exists());
}

#[test]
fn a_command_cannot_end_its_own_guard_inside_a_namespace() {
    if !tiers().contains(&Tier::Namespace) {
        return;
    }
    let exit = launch(Tier::Namespace, script("kill -9 1; kill -9 $PPID; kill -TERM 1; echo alive; exit 4"));
    assert_eq!((exit.reason, text(&exit.stdout.head)), (ExitReason::Code(4), "alive\n".to_owned()));
}

#[test]
fn inside_a_namespace_only_the_command_is_seen() {
    if !tiers().contains(&Tier::Namespace) {
        return;
    }
    let exit = launch(Tier::Namespace, script("ls -d /proc/[0-9]* | wc -l; echo $$"));
    let numbers: Vec<u32> =
        text(&exit.stdout.head).lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(numbers[0] <= 4 && numbers[1] <= 4, "{numbers:?}");
}

#[test]
fn t17_standard_input_is_empty_or_what_was_given() {
    for &tier in tiers() {
        assert_eq!(text(&launch(tier, script("cat; echo end")).stdout.head), "end\n");
        let long = "0123456789".repeat(100_000);
        let exit = launch(tier, CommandSpec { stdin: long.into_bytes(), ..script("wc -c") });
        assert_eq!(text(&exit.stdout.head).trim(), "1000000");
    }
}

#[test]
fn a_flood_is_bounded_in_memory_and_kept_in_the_file() {
    for &tier in tiers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let copy = file.reopen().unwrap();
        let keeping = OutputOptions { open_file: Some(|| Ok(copy)), idle_timeout: None, recent: None };
        let spec = script("yes 0123456789abcde | head -c 50000000");
        let exit =
            block(launcher(tier).launch_with_output(spec, keeping, &CancellationToken::new())).unwrap();
        assert_eq!(
            (exit.reason, exit.stdout.total, exit.stored),
            (ExitReason::Code(0), 50_000_000, StoredOutput::Complete)
        );
        assert_eq!((exit.stdout.head.len(), exit.stdout.tail.len()), (HEAD_BYTES, TAIL_BYTES));
        assert_eq!(
            (exit.stdout.line_ends, file.as_file().metadata().unwrap().len()),
            (50_000_000 / 16, 50_000_000)
        );
    }
}

#[test]
fn t20_the_environment_is_what_was_allowed_and_given_but_never_a_secret() {
    for &tier in tiers() {
        let env = [("X", "given"), ("KEY", "sk-very-secret"), ("AUTH", "Bearer sk-very-secret")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let exit = launch(tier, CommandSpec { argv: vec!["env".to_owned()], env, ..script("") });
        let mut lines: Vec<String> = text(&exit.stdout.head).lines().map(str::to_owned).collect();
        lines.sort();
        let path = "PATH=/usr/local/bin:/usr/bin:/bin";
        assert_eq!(lines, ["GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "PAGER=cat", path, "X=given"]);
    }
}

#[test]
fn a_command_has_its_own_session_no_core_files_and_no_foreign_descriptors() {
    for &tier in tiers() {
        let exit =
            launch(tier, script("ulimit -c; ls /proc/self/fd; ps -o tty= -p $$ 2>/dev/null || echo '?'"));
        let text = text(&exit.stdout.head);
        let lines: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(lines, ["0", "0", "1", "2", "3", "?"], "3 is the directory that ls reads");
    }
}

#[test]
fn the_tier_of_the_sandbox_is_detected() {
    let launcher = Launcher::new(BTreeMap::new(), Vec::new());
    let words = launcher.with_executable("/bin/true".into()).with_detected_tier().unwrap().tier();
    assert_eq!(words, Tier::Group, "a program that is no launcher offers no tier");
    let launcher = Launcher::new(BTreeMap::new(), Vec::new())
        .with_executable(program().into())
        .with_detected_tier()
        .unwrap();
    assert_ne!(launcher.tier(), Tier::Group);
}

#[test]
fn a_hand_started_launcher_ends_at_once() {
    let status = Command::new(program()).arg("__launch").stdin(Stdio::null()).status().unwrap();
    assert!(!status.success());
}

#[test]
fn all_of_this_holds_for_an_unprivileged_user_too() {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let copies = [std::env::current_exe().unwrap(), program().into()].map(|from| {
        let to = dir.path().join(from.file_name().unwrap());
        // A copy made by this process could be held open for writing by a fork of another test and not be executable.
        assert!(Command::new("cp").args([&from, &to]).status().unwrap().success());
        to
    });
    let [tests, agent] = &copies;
    let output = Command::new(tests)
        .args(["process::", "--skip", "unprivileged_user"])
        .current_dir(dir.path())
        .env(PROGRAM, agent)
        .env("TMPDIR", dir.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn a_launch_may_be_a_task_of_its_own() {
    fn assert_send(_: impl Send) {}
    assert_send(launcher(Tier::Subreaper).launch(script(""), &CancellationToken::new()));
}

#[test]
fn class_44_a_chain_of_processes_that_replace_each_other_is_caught() {
    for &tier in tiers() {
        let dir = tempfile::tempdir().unwrap();
        // Each link starts the next in a session of its own and ends; should one escape, it stops with the directory.
        let link = "[ -d . ] && [ -e chain ] && { setsid sh chain & }";
        std::fs::write(dir.path().join("chain"), link).unwrap();
        let spec = CommandSpec {
            cwd: dir.path().into(),
            timeout: Duration::from_millis(300),
            ..script("sh chain; sleep 60")
        };
        let exit = launch(tier, spec);
        assert_eq!(exit.reason, ExitReason::TimedOut);
        // A sweep has to be faster than the chain, which on a machine with other work takes it a while.
        assert!(exit.duration < Duration::from_secs(8), "{tier:?} took {:?}", exit.duration);
        // The guard, which ends a moment after it has answered, is in the directory too.
        let links = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let words = std::fs::read(entry.path().join("cmdline"));
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir.path())
                && words.is_ok_and(|words| words.ends_with(b"chain\0"))
        });
        assert_eq!(links.count(), 0, "{tier:?}");
    }
}

/// What `text` comes to under these limits, and how many of its sleepers are left.
fn limited(tier: Tier, limits: CommandLimits, text: &str, seconds: &str) -> (ExitReason, usize) {
    let launcher = launcher(tier).with_limits(limits);
    let exit = block(launcher.launch(script(text), &CancellationToken::new())).unwrap();
    (exit.reason, count_sleepers(seconds))
}

#[test]
fn class_45_a_tree_of_too_many_processes_is_ended_and_one_of_just_enough_is_not() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let limits = CommandLimits { processes: 60, ..CommandLimits::default() };
        // A bomb that is over after two hundred.
        let bomb = format!("i=0; while [ $i -lt 200 ]; do sleep {seconds} & i=$((i+1)); done; wait");
        let ended = limited(tier, limits, &bomb, &seconds);
        assert_eq!(ended, (ExitReason::Exceeded(ExceededLimit::Processes), 0), "{tier:?}");
        let few = "i=0; while [ $i -lt 20 ]; do sleep 1 & i=$((i+1)); done; wait";
        assert_eq!(limited(tier, limits, few, &seconds).0, ExitReason::Code(0), "{tier:?}");
    }
}

#[test]
fn class_45_a_tree_that_takes_too_much_memory_is_ended() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let limits = CommandLimits { memory_bytes: Some(64 << 20), ..CommandLimits::default() };
        // `tail` holds all that it may have to print, and nobody takes it.
        let hog = format!("head -c 200000000 /dev/zero | tail -c 200000000 | sleep {seconds}");
        let ended = limited(tier, limits, &hog, &seconds);
        assert_eq!(ended, (ExitReason::Exceeded(ExceededLimit::Memory), 0), "{tier:?}");
    }
}

#[test]
fn class_45_a_file_beyond_the_longest_is_not_written() {
    for &tier in tiers() {
        let dir = tempfile::tempdir().unwrap();
        let spec = CommandSpec { cwd: dir.path().into(), ..script("exec truncate -s 9G big") };
        let exit = launch(tier, spec);
        assert_eq!(exit.reason, ExitReason::Signal(25), "{tier:?}: SIGXFSZ");
        assert!(std::fs::metadata(dir.path().join("big")).unwrap().len() <= 8 << 30);
    }
}

#[test]
fn class_45_a_command_that_falls_silent_is_ended_and_one_that_goes_on_is_not() {
    for &tier in tiers() {
        let seconds = unique_seconds();
        let run = |text: &str, idle| {
            let keeping = OutputOptions {
                open_file: None::<fn() -> std::io::Result<std::fs::File>>,
                idle_timeout: idle,
                recent: None,
            };
            block(launcher(tier).launch_with_output(script(text), keeping, &CancellationToken::new()))
                .unwrap()
        };
        let exit = run(&format!("echo begun; {}", busy_tree(&seconds)), Some(Duration::from_millis(500)));
        assert_eq!(
            (exit.reason, text(&exit.stdout.head), count_sleepers(&seconds)),
            (ExitReason::Idle, "begun\n".to_owned(), 0)
        );
        assert!(exit.duration < Duration::from_millis(500) + 2 * ALLOWED, "{:?}", exit.duration);
        let exit = run("for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done", Some(Duration::from_secs(2)));
        assert_eq!(exit.reason, ExitReason::Code(0), "six times half a second, and never two without a word");
    }
}

#[test]
fn class_45_endless_output_ends_with_the_time() {
    // A busy machine takes a while to start the command.
    let time = Duration::from_secs(1);
    for &tier in tiers() {
        let exit = launch(tier, CommandSpec { timeout: time, ..script("yes") });
        assert_eq!((exit.reason, exit.stdout.head.len()), (ExitReason::TimedOut, HEAD_BYTES));
        assert!(exit.duration < time + ALLOWED, "{:?}", exit.duration);
    }
}

#[test]
fn the_output_can_be_read_while_the_command_runs() {
    for &tier in tiers() {
        let (recent, cancel) = (RecentOutput::default(), CancellationToken::new());
        let open = None::<fn() -> std::io::Result<std::fs::File>>;
        let keeping = OutputOptions { open_file: open, idle_timeout: None, recent: Some(recent.clone()) };
        let launcher = launcher(tier);
        let seconds = unique_seconds();
        let exit = block(async {
            let spec = script(&format!("echo ready; sleep {seconds}"));
            let launch = launcher.launch_with_output(spec, keeping, &cancel);
            let reader = async {
                recent.wait_for_more(0).await;
                cancel.cancel();
            };
            let (exit, ()) = tokio::join!(launch, reader);
            exit.unwrap()
        });
        assert_eq!(
            (exit.reason, recent.tail_from(0, 100).bytes),
            (ExitReason::Cancelled, b"ready\n".to_vec())
        );
    }
}

/// The runtime asks for events after each task, like that of the program: the one who waits for the end goes before the reader.
#[test]
fn the_end_of_a_server_is_told_when_its_standard_error_is_read() {
    let program = "head -c 3000000 /dev/zero | tr '\\0' e >&2; echo the very end >&2; exit 3";
    for &tier in tiers() {
        for _ in 0..50 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build();
            let (end, stderr) = runtime.unwrap().block_on(async {
                let server = launcher(tier).start_server(script(program), BTreeMap::new()).unwrap();
                (server.handle.wait().await, server.handle.stderr())
            });
            assert_eq!(end.reason, "it exited with code 3");
            assert!(stderr.ends_with("ethe very end\n"), "{tier:?}");
        }
    }
}
