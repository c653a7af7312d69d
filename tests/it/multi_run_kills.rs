//! Commands of several runs are killed at system calls that change the disk, and resumed: nothing is lost, repeated or left running.

use crate::support::extent::cases;
use crate::support::long_run::is_unknown;
use crate::support::random::Random;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use crate::support::sleepers::wait_until_nothing_works_in;
use crate::support::syscall_faults::{Disk, Fault, Watched, at_each_of, fills, watched};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Every conversation adds a line and ends; one that was cut off after its answer is answered again.
const TURNS: &str = "turns:
  - calls: [{name: run_command, arguments: {command: echo line >> log.txt}}]
  - {text: COMPLETE, repeat: 3}
";

const PIPELINE: &str = "steps:
  - {name: one, prompt: one}
  - {name: two, run: echo two >> log.txt}
  - {name: three, prompt: three, checkpoint: commit}
  - {name: four, run: echo four >> log.txt}
";

/// A command, and where its runs work.
struct Case {
    words: &'static [&'static str],
    /// Whether the runs work in the workspace; if not, each works in a worktree.
    in_workspace: bool,
}

const LOOP: Case = Case {
    words: &["loop", "task", "--check", "test \"$(wc -l < log.txt)\" -ge 3", "--model", "openai/mock"],
    in_workspace: true,
};
const PARALLEL: Case = Case {
    words: &[
        "parallel",
        "--task",
        "a",
        "--task",
        "b",
        "--task",
        "c",
        "--workers",
        "2",
        "--model",
        "openai/mock",
    ],
    in_workspace: false,
};
const STEPS: Case = Case { words: &["pipeline", "../p.yaml", "--model", "openai/mock"], in_workspace: true };
const EVAL: Case = Case {
    words: &["eval", "task", "--models", "openai/a,openai/b", "--check", "test -s log.txt"],
    in_workspace: false,
};

/// A repository with a file that is staged, one in the stash, and a pipeline beside it.
fn repository() -> Lab {
    let lab = Lab::new().file("a.txt", "a").pipeline(PIPELINE).committed();
    fs::write(lab.ws().join("a.txt"), "stashed").unwrap();
    lab.git(&["stash", "-q"]);
    fs::write(lab.ws().join("staged.txt"), "staged").unwrap();
    lab.git(&["add", "staged.txt"]);
    lab
}

/// What belongs to the user: branch, staged files, stash.
fn users(lab: &Lab) -> [String; 3] {
    [&["branch", "--show-current"][..], &["diff", "--cached"], &["stash", "list", "-p", "--format=%gd"]]
        .map(|args| lab.git(args))
}

/// How often each line was added, in the workspace or in the worktrees of all runs.
fn lines(lab: &Lab, case: &Case) -> BTreeMap<String, usize> {
    let texts = if case.in_workspace {
        vec![lab.read("log.txt")]
    } else {
        let branches = lab.git(&["for-each-ref", "--format=%(refname)", "refs/heads/agent"]);
        let has_log = |branch: &&str| lab.git(&["ls-tree", "--name-only", branch]).contains("log.txt");
        branches
            .lines()
            .filter(has_log)
            .map(|branch| lab.git(&["show", &format!("{branch}:log.txt")]))
            .collect()
    };
    let mut counts = BTreeMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// The number of calls in all sessions whose outcome is known, and of those whose outcome is not.
fn calls(lab: &Lab) -> (usize, usize) {
    let journals = lab.journals().into_iter().map(|journal| fs::read_to_string(journal).unwrap());
    let ends: Vec<String> = journals
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.contains(r#""type":"tool_call_end""#))
        .collect();
    let unknown = ends.iter().filter(|line| is_unknown(line)).count();
    (ends.len() - unknown, unknown)
}

/// The names and ends of the runs, without what differs between two executions.
fn outcome(document: &Value) -> Value {
    let runs = document["runs"].as_array().unwrap().iter();
    let runs: Vec<Value> = runs.map(|run| json!([run["name"], run["status"], run["stop_reason"]])).collect();
    json!([document["status"], document["stop_reason"], runs])
}

fn args<'a>(words: &[&'a str], url: &'a str) -> Vec<&'a str> {
    [words, &["--mode", "yolo", "--json", "--api-base", url, "--api-key", KEY]].concat()
}

/// Runs the command until `fault`; nothing where nobody may watch another process.
fn run_until(case: &Case, fault: Fault) -> Option<(Lab, Watched)> {
    let (lab, server) = (repository(), Server::following(TURNS));
    let url = server.url();
    let watched = watched(&lab, &args(case.words, &url), fault)?;
    Some((lab, watched))
}

/// Resumes the record, or begins anew where the command was killed before it had one; returns the document.
fn go_on(lab: &Lab, case: &Case, what: &str) -> Value {
    let listed = lab.agent(&["work", "list"]).exits(0).stdout;
    let server = Server::following(TURNS);
    let url = server.url();
    let id = listed.split_whitespace().next().unwrap();
    let done = if listed.contains("no records") {
        assert_eq!(
            (lab.journals().len(), lab.exists("log.txt")),
            (0, false),
            "{what}: it worked without a record"
        );
        lab.agent(&args(case.words, &url))
    } else {
        lab.agent(&[case.words[0], "resume", id, "--json", "--api-base", &url, "--api-key", KEY])
    };
    if done.stderr.contains("ended with success") {
        return lab.agent(&["work", "show", id, "--json"]).exits(0).json();
    }
    assert!(done.code.is_some_and(|code| code <= 2), "{what}: {:?} {}", done.code, done.stderr);
    done.json()
}

fn killed_at_seeded_points(case: &Case) {
    let Some((lab, undisturbed)) = run_until(case, Fault::None) else { return };
    assert_eq!(undisturbed.code, Some(0), "{}", undisturbed.stderr);
    let all_lines = lines(&lab, case);
    let steps: Vec<&String> = all_lines.keys().filter(|line| *line != "line").collect();
    let document = &undisturbed.stdout[undisturbed.stdout.find('{').unwrap()..];
    let expected = outcome(&serde_json::from_str(document).unwrap());
    let expected_users = users(&repository());
    at_each_of(cases(1, 5, 50), case.words[0], |seed| {
        let fault = Fault::Death(Random(seed).below(undisturbed.calls.len()));
        let what = format!("{} {fault:?}", case.words[0]);
        let (lab, dead) = run_until(case, fault).unwrap();
        assert_eq!(dead.code, None, "{what}");
        wait_until_nothing_works_in(&lab.outside(), &what);
        let document = go_on(&lab, case, &what);
        wait_until_nothing_works_in(&lab.outside(), &what);
        let (known, unknown) = calls(&lab);
        let mut added = lines(&lab, case);
        let by_calls = added.remove("line").unwrap_or_default();
        let within = (known..=known + unknown).contains(&by_calls);
        assert!(within, "{what}: {known} + {unknown} calls, {by_calls} lines");
        if unknown == 0 {
            assert_eq!(outcome(&document), expected, "{what}: {document:#}");
        }
        assert!(added.values().all(|times| *times == 1), "{what}: {added:?}");
        assert_eq!(added.keys().collect::<Vec<_>>(), steps, "{what}");
        assert_eq!(users(&lab), expected_users, "{what}");
        assert_eq!(lab.git(&["fsck", "--no-progress", "--no-dangling"]), "", "{what}");
        unknown
    });
}

/// Fills the disk at seeded points: what was asked for is done, or the end says why not, and what the user has is unchanged.
#[test]
fn a_full_disk_is_no_success_and_changes_nothing_of_the_users() {
    for case in [LOOP, PARALLEL, STEPS, EVAL] {
        let Some((_, undisturbed)) = run_until(&case, Fault::None).filter(|_| fills()) else { return };
        let expected_users = users(&repository());
        at_each_of(cases(1, 2, 12), case.words[0], |seed| {
            let mut random = Random(seed);
            let point = random.below(undisturbed.calls.len());
            let fault = Fault::Full(point, random.of(&[Disk::Both, Disk::State, Disk::Workspace]));
            let (lab, full) = run_until(&case, fault).unwrap();
            let what = format!("{} {fault:?}: {:?} {}", case.words[0], full.code, full.stderr);
            assert!(full.code.is_some_and(|code| code <= 3), "{what}");
            let is_told = (full.stdout + &full.stderr).contains("No space left on device");
            assert!(full.code == Some(0) || is_told, "{what}");
            assert_eq!(users(&lab), expected_users, "{what}");
            assert_eq!(lab.git(&["fsck", "--no-progress", "--no-dangling"]), "", "{what}");
            go_on(&lab, &case, &what);
            0
        });
    }
}

#[test]
fn a_loop_that_is_killed_at_any_point_goes_on_and_repeats_nothing() {
    killed_at_seeded_points(&LOOP);
}

#[test]
fn parallel_tasks_that_are_killed_at_any_point_go_on_and_repeat_nothing() {
    killed_at_seeded_points(&PARALLEL);
}

#[test]
fn a_pipeline_that_is_killed_at_any_point_goes_on_and_repeats_nothing() {
    killed_at_seeded_points(&STEPS);
}

#[test]
fn an_eval_that_is_killed_at_any_point_goes_on_and_repeats_nothing() {
    killed_at_seeded_points(&EVAL);
}
