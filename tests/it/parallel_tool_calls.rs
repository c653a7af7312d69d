//! Several calls in one answer: which of them run together, and that every result stands in its place.

use crate::support::run::{Lab, NO_BREAKERS};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::thread::JoinHandle;

/// Runs one answer with `calls` in yolo and returns the results as the model gets them, by id.
fn results_by_id(lab: &Lab, calls: &[Value]) -> Vec<(String, String)> {
    let script = json!({"turns": [{"calls": calls}, {"text": "done"}]}).to_string();
    let server = Server::start(&script);
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    let messages = requests[1].messages();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| (text(&message["tool_call_id"]), text(&message["content"]))).collect()
}

/// A call called `id`.
fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "name": name, "arguments": arguments})
}

fn grep(id: &str) -> Value {
    call(id, "grep", &json!({"text": "alpha", "path": "a.txt"}))
}

fn command(id: &str, command: &str) -> Value {
    call(id, "run_command", &json!({"command": command, "timeout": 30}))
}

fn append(id: &str, path: &str) -> Value {
    call(id, "write_file", &json!({"path": path, "content": format!("{id}\n"), "mode": "append"}))
}

/// A lab with this setting of `tools.parallel`.
fn with_parallel(parallel: &str) -> Lab {
    Lab::with_a_txt().config(&format!("tools: {{parallel: {parallel}}}\n{NO_BREAKERS}"))
}

/// Says that it comes, and waits to be let through.
const MEET: &str = "echo >come; read -r line <go";

/// Lets those who [`MEET`] through when enough of them have come, and from then on each that comes.
struct Meeting {
    come: File,
    waiting: Option<JoinHandle<File>>,
}

impl Meeting {
    /// Of `together` of them.
    fn new(lab: &Lab, together: usize) -> Self {
        let [come, go] = ["come", "go"].map(|name| lab.pipe(name));
        let mut coming = come.try_clone().unwrap();
        let waiting = std::thread::spawn(move || {
            coming.read_exact(&mut vec![0; together]).unwrap();
            (&go).write_all(&[b'\n'; MOST_CALLS]).unwrap();
            go
        });
        Self { come, waiting: Some(waiting) }
    }
}

impl Drop for Meeting {
    /// Those that never came are not waited for.
    fn drop(&mut self) {
        self.come.write_all(&[b'\n'; MOST_CALLS]).unwrap();
        drop(self.waiting.take().unwrap().join());
    }
}

/// No test here asks for more calls.
const MOST_CALLS: usize = 16;

/// A lab in which, before each `grep`, a hook waits until `together` of them have come this far.
fn lab_where_reads_meet(parallel: &str, together: usize) -> (Lab, Meeting) {
    let hooks = json!({"pre_tool_use": [{"command": MEET, "matcher": "grep"}]});
    let lab = Lab::with_a_txt().config(
        &json!({"tools": {"parallel": parallel}, "hooks": hooks, "loop": {"max_repeated_calls": 0}})
            .to_string(),
    );
    let meeting = Meeting::new(&lab, together);
    (lab, meeting)
}

/// `+ID` for each call that began and `-ID` for each that ended, in the order of the journal.
fn order(lab: &Lab) -> Vec<String> {
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records
        .filter_map(|line| {
            let event = &line["record"]["event"];
            match event["type"].as_str().unwrap() {
                "tool_call_start" => Some(format!("+{}", event["call"]["id"].as_str().unwrap())),
                "tool_call_end" => Some(format!("-{}", event["result"]["call_id"].as_str().unwrap())),
                _ => None,
            }
        })
        .collect()
}

fn place(order: &[String], what: &str) -> usize {
    order.iter().position(|event| event == what).unwrap_or_else(|| panic!("{what} in {order:?}"))
}

/// The most calls that had begun and not ended.
fn most_at_once(order: &[String]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for event in order {
        if event.starts_with('+') {
            now += 1;
        } else {
            now -= 1;
        }
        most = most.max(now);
    }
    most
}

#[test]
fn l03_results_and_ids_stand_in_the_models_order_under_every_setting() {
    for parallel in ["off", "reads", "all"] {
        let lab = with_parallel(parallel);
        let results = results_by_id(
            &lab,
            &[
                call("z", "read_file", &json!({"path": "a.txt"})),
                call("y", "no_such_tool", &json!({})),
                grep("x"),
                call("w", "write_file", &json!("{\"path\": ")),
                call("v", "write_file", &json!({"path": "b.txt", "content": "beta\n"})),
                call("u", "read_file", &json!({"path": "nowhere"})),
                command("t", "echo tau"),
            ],
        );
        let wanted = [
            ("z", "alpha"),
            ("y", "Unknown tool"),
            ("x", "a.txt:1: alpha"),
            ("w", "not valid JSON"),
            ("v", "b.txt created"),
            ("u", "does not exist"),
            ("t", "tau"),
        ];
        assert_eq!(results.len(), wanted.len(), "{parallel}");
        for ((id, text), (wanted_id, part)) in results.iter().zip(wanted) {
            assert!(id == wanted_id && text.contains(part), "{parallel}: {id}: {text}");
        }
    }
}

#[test]
fn l03_a_call_that_ends_last_keeps_its_first_place() {
    let lab = with_parallel("all");
    let _held_open = lab.pipe("go");
    let waits = command("first", "read -r line <go; echo slow");
    let results = results_by_id(&lab, &[waits, grep("second"), command("third", "echo >go")]);
    let ids: Vec<&str> = results.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["first", "second", "third"]);
    assert!(results[0].1.contains("slow"), "{}", results[0].1);
    let order = order(&lab);
    assert!(place(&order, "-second") < place(&order, "-first"), "{order:?}");
}

#[test]
fn a_server_that_gives_its_calls_the_same_id_in_every_answer_gets_each_result_for_its_own_call() {
    let lab = Lab::with_a_txt().file("b.txt", "beta\n");
    let read = |path: &str| json!({"calls": [call("c1", "read_file", &json!({"path": path}))]});
    let script = json!({"turns": [read("a.txt"), read("b.txt"), {"text": "done"}]}).to_string();
    let server = Server::start(&script);
    lab.run(&server, &[]).exits(0);
    let messages = &server.requests()[2].body["messages"];
    let asked =
        messages.as_array().unwrap().iter().filter_map(|message| message["tool_calls"][0]["id"].as_str());
    assert_eq!(asked.collect::<Vec<_>>(), ["c1", "c1_2"]);
    let results = messages.as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    for (result, (id, text)) in results.zip([("c1", "alpha"), ("c1_2", "beta")]) {
        assert_eq!(result["tool_call_id"], id);
        assert!(result["content"].as_str().unwrap().contains(text), "{result}");
    }
}

#[test]
fn t25_under_all_four_commands_wait_for_each_other() {
    let lab = with_parallel("all");
    let _meeting = Meeting::new(&lab, 4);
    let calls = ["1", "2", "3", "4"].map(|id| command(id, &format!("{MEET}; echo met")));
    for (id, text) in results_by_id(&lab, &calls) {
        assert!(text.contains("met"), "{id}: {text}");
    }
}

// Fault B10: there was no maximum.
#[test]
fn under_all_eight_calls_run_together_and_never_more() {
    let lab = with_parallel("all");
    let _meeting = Meeting::new(&lab, 8);
    let calls: Vec<Value> =
        (0..12).map(|number| command(&format!("c{number}"), &format!("{MEET}; echo met"))).collect();
    for (id, text) in results_by_id(&lab, &calls) {
        assert!(text.contains("met"), "{id}: {text}");
    }
    let order = order(&lab);
    assert_eq!(most_at_once(&order), 8, "{order:?}");
}

#[test]
fn t25_under_reads_four_read_only_calls_run_together_and_never_more() {
    let (lab, _meeting) = lab_where_reads_meet("reads", 4);
    let calls: Vec<Value> = (0..10).map(|number| grep(&format!("g{number}"))).collect();
    for (id, text) in results_by_id(&lab, &calls) {
        assert_eq!(text, "a.txt:1: alpha", "{id}");
    }
    let order = order(&lab);
    assert_eq!(most_at_once(&order), 4, "{order:?}");
    assert_eq!(order[..4], ["+g0", "+g1", "+g2", "+g3"]);
}

// Fault B17: stays; commands of one answer run together only where the configuration says so.
#[test]
fn t25_under_reads_whatever_is_not_a_read_runs_alone_in_its_place() {
    let (lab, _meeting) = lab_where_reads_meet("reads", 2);
    let calls =
        [grep("a"), grep("b"), append("w", "new.txt"), command("c", "cat new.txt"), grep("d"), grep("e")];
    let results = results_by_id(&lab, &calls);
    for grep in [0, 1, 4, 5] {
        assert!(
            results[grep].1.ends_with("a.txt:1: alpha") && !results[grep].1.contains("Error"),
            "{results:?}"
        );
    }
    assert!(results[3].1.contains("w\n"), "the command sees what was written before it: {}", results[3].1);
    let order = order(&lab);
    assert_eq!(order[..2], ["+a", "+b"]);
    assert_eq!(order[4..8], ["+w", "-w", "+c", "-c"]);
    assert_eq!(order[8..10], ["+d", "+e"]);
}

#[test]
fn t25_off_runs_one_call_after_another() {
    let (lab, _meeting) = lab_where_reads_meet("off", 1);
    results_by_id(&lab, &[grep("a"), grep("b"), command("c", "true"), grep("d")]);
    assert_eq!(order(&lab), ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "-d"]);
}

#[test]
fn t26_four_appends_in_one_answer_arrive_in_order_under_every_setting() {
    for parallel in ["off", "reads", "all"] {
        let lab = with_parallel(parallel);
        results_by_id(&lab, &["one", "two", "three", "four"].map(|id| append(id, "list.txt")));
        assert_eq!(lab.read("list.txt"), "one\ntwo\nthree\nfour\n", "{parallel}");
    }
}

#[test]
fn t26_writers_of_one_file_keep_their_order_under_all_its_names_while_others_go_on() {
    // The first writer is held up until the last command says so, and that until another file is written.
    let before = r#"case "$(cat)" in *one*) read -r line <go;; esac"#;
    let after = r#"case "$(cat)" in *other*) echo >told;; esac"#;
    let hooks = json!({
        "pre_tool_use": [{"command": before, "matcher": "write_file"}],
        "post_tool_use": [{"command": after, "matcher": "write_file"}],
    });
    let config = json!({"tools": {"parallel": "all"}, "hooks": hooks}).to_string();
    let lab = Lab::new().file("list.txt", "").config(&config);
    let _held_open = ["go", "told"].map(|name| lab.pipe(name));
    symlink("list.txt", lab.ws().join("link")).unwrap();
    let absolute = lab.ws().join("list.txt").to_str().unwrap().to_owned();
    let calls = [
        append("one", "list.txt"),
        append("two", "./list.txt"),
        append("three", "link"),
        append("four", &absolute),
        append("other", "other.txt"),
        command("last", "read -r line <told; echo >go"),
    ];
    let results = results_by_id(&lab, &calls);
    assert_eq!(lab.read("list.txt"), "one\ntwo\nthree\nfour\n", "{results:?}");
    let order = order(&lab);
    assert!(place(&order, "-other") < place(&order, "-one"), "{order:?}");
}
