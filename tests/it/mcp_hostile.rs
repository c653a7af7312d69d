//! MCP servers that misbehave: the run ends with code 0 and in time, the terminal gets no control character, no process is left,
//! and the tools of the next server work.

use crate::support::calls::turn;
use crate::support::extent::some_of;
use crate::support::mcp::{done, peers, processes_with, results};
use crate::support::server::Server;
use serde_json::json;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The servers and what must be seen of each.
const SERVERS: &str = include_str!("support/mcp_hostile.sh");

/// Time limit of a run with one of them: the limits of its server, each 4 s, and a slow machine.
const LIMIT: Duration = Duration::from_secs(40);

/// Runs at the same time: most of them wait.
const WORKERS: usize = 4;

/// Returns what is wrong with the run whose server has these functions.
fn fault(name: &str, functions: &str) -> Option<String> {
    let wanted = |key: &str| {
        let line = functions.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().trim().to_owned()
    };
    let limits = "start_timeout_seconds: 4, call_timeout_seconds: 4";
    let lab = peers(&[("bad", functions, limits), ("good", "at_call() { text 'still here'; }", "")]);
    let turns = [turn("mcp__bad__echo", &json!({})), turn("mcp__good__echo", &json!({})), done()];
    let model = Server::turns(turns);
    let begun = Instant::now();
    let finished = lab.run_yolo(&model, &[]);
    let took = begun.elapsed();
    let read = model.requests().last().map(results).unwrap_or_default();
    let is_raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}');
    let checks = [
        ("another exit code", finished.code == Some(0)),
        ("too slow", took < LIMIT),
        ("control characters", !is_raw(&finished.stdout) && !is_raw(&finished.stderr)),
        ("the text for the model", read.contains(&wanted("# model:")) && !read.contains("WRONG")),
        ("the text for the user", finished.stderr.contains(&wanted("# user:"))),
        ("the next server", read.contains("still here")),
        ("a flood of warnings", finished.stderr.lines().count() < 50),
        ("processes are left", processes_with(&lab.ws().display().to_string()) == 0),
        ("a name was run as a command", !lab.exists("owned")),
    ];
    let failed: Vec<&str> = checks.iter().filter(|(_, holds)| !holds).map(|(what, _)| *what).collect();
    let shown = |text: &str| text.chars().take(2_000).collect::<String>();
    (!failed.is_empty()).then(|| {
        format!("{name}, {took:?}: {failed:?}\nmodel: {}\nuser: {}", shown(&read), shown(&finished.stderr))
    })
}

#[test]
fn mh_001_to_020_a_server_that_misbehaves_harms_neither_the_run_nor_the_terminal_nor_the_next_server() {
    let servers: Vec<_> = SERVERS.split("\n## ").skip(1).filter_map(|part| part.split_once('\n')).collect();
    assert!(servers.len() >= 40, "{} servers", servers.len());
    let (todo, faults) = (Mutex::new(some_of(servers, 4)), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((name, functions)) = { todo.lock().unwrap().pop() } {
                    faults.lock().unwrap().extend(fault(name, functions));
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
