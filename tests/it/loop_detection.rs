//! Runs that go nowhere are noticed, told and ended; runs that only look so are left alone.

use crate::support::run::Lab;
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

const READ: &str = "{calls: [{name: read_file, arguments: {path: a.txt}}]}";
const LIST: &str = "{calls: [{name: list_files, arguments: {}}]}";
const DONE: &str = "{text: done}";

/// Runs `turns`, which end with `code`; the document, and what was asked.
#[track_caller]
fn play(lab: &Lab, turns: &[&str], code: i32) -> (Value, Vec<Recorded>) {
    let server = Server::yaml(turns);
    let json = lab.run_yolo(&server, &["--json"]).exits(code).json();
    (json, server.requests())
}

/// The text of the last message of a request.
fn last(request: &Recorded) -> String {
    request.messages().last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// How many messages of a request hold `text`.
fn holding(request: &Recorded, text: &str) -> usize {
    let messages = request.messages();
    messages
        .iter()
        .filter(|message| message["content"].as_str().is_some_and(|said| said.contains(text)))
        .count()
}

fn running(command: &str) -> String {
    json!({"calls": [{"name": "run_command", "arguments": {"command": command}}]}).to_string()
}

#[test]
fn l23_the_equal_call_that_is_one_too_many_does_not_run_and_ends_the_run() {
    let lab = Lab::with_a_txt().config("loop: {max_repeated_calls: 2, on_repeat: stop}\n");
    let append = running("echo x >> f");
    let (json, requests) = play(&lab, &[&append, &append, "{text: it is written}"], 2);
    assert_eq!(lab.read("f"), "x\n");
    assert_eq!((&json["stop_reason"], &json["status"]), (&"repeated_call".into(), &"partial".into()));
    assert_eq!((&json["output"], &json["tool_calls"]), (&"it is written".into(), &2.into()));
    assert_eq!(requests.len(), 3);
    assert!(requests[2].body.get("tools").is_none(), "the closing summary is asked for without tools");
    assert_eq!(holding(&requests[2], "This call did not run"), 1);
}

#[test]
fn l23_the_model_is_told_then_must_change_its_plan_and_then_the_run_ends() {
    let mut turns = vec![READ; 5];
    turns.push("{text: what there is to say}");
    let (json, requests) = play(&Lab::with_a_txt(), &turns, 2);
    assert_eq!(
        (&json["stop_reason"], &json["output"]),
        (&"repeated_call".into(), &"what there is to say".into())
    );
    assert!(last(&requests[2]).contains("alpha"), "the second look is no repetition yet");
    let [told, demanded, closing] = [&requests[3], &requests[4], &requests[5]].map(last);
    assert!(told.contains("`read_file` is called 3 times in a row"), "{told}");
    assert!(demanded.contains("Your plan must change"), "{demanded}");
    assert!(closing.contains("no more tools can be called"), "{closing}");
    let failed =
        json["tools_used"].as_array().unwrap().iter().filter(|used| used["success"] == false).count();
    assert_eq!(failed, 3, "each call has its result, whether it ran or not");
}

#[test]
fn l23_a_person_reads_that_the_model_was_told() {
    let server = Server::yaml(&[READ, READ, READ, DONE]);
    let done = Lab::with_a_txt().run(&server, &[]).exits(0);
    assert!(done.stderr.contains("message to the model: You seem to be going in circles"), "{}", done.stderr);
    assert_eq!(done.stdout, "done\n");
}

#[test]
fn l23_a_call_whose_result_is_another_one_each_time_is_none() {
    let lab = Lab::with_a_txt();
    let count = running("echo x >> n; wc -l < n");
    let mut turns = vec![count.as_str(); 8];
    turns.push(DONE);
    let (_, requests) = play(&lab, &turns, 0);
    assert_eq!((lab.read("n").lines().count(), holding(&requests[8], "[SYSTEM]")), (8, 0));
}

#[test]
fn l23_waiting_is_none_and_neither_are_tools_that_may_repeat() {
    let wait = running("sleep 0; echo pending");
    let (_, requests) = play(&Lab::with_a_txt(), &[&[wait.as_str(); 6][..], &[DONE]].concat(), 0);
    assert_eq!(holding(&requests[6], "[SYSTEM]"), 0);
    let exempt = Lab::with_a_txt().config("loop: {repeat_exempt: [read_file]}\n");
    let (_, requests) = play(&exempt, &[&[READ; 6][..], &[DONE]].concat(), 0);
    assert_eq!(holding(&requests[6], "[SYSTEM]"), 0);
}

#[test]
fn l24_equal_calls_of_one_answer_count() {
    let lab = Lab::with_a_txt().config("loop: {max_repeated_calls: 2, on_repeat: stop}\n");
    let append = r#"{"name": "run_command", "arguments": {"command": "echo x >> f"}}"#;
    let (json, _) = play(&lab, &[&format!("{{calls: [{append}, {append}]}}"), "{text: closing}"], 2);
    assert_eq!((lab.read("f").as_str(), &json["stop_reason"]), ("x\n", &"repeated_call".into()));
    let used: Vec<&Value> =
        json["tools_used"].as_array().unwrap().iter().map(|used| &used["success"]).collect();
    assert_eq!(used, [&json!(true), &json!(false)]);
}

#[test]
fn l25_arguments_in_another_order_are_the_same() {
    let lab = Lab::with_a_txt().config("loop: {max_repeated_calls: 2, on_repeat: stop}\n");
    let one = r#"{calls: [{name: grep, arguments: '{"text": "a", "path": "a.txt"}'}]}"#;
    let other = r#"{calls: [{name: grep, arguments: '{"path": "a.txt", "text": "a"}'}]}"#;
    let (json, _) = play(&lab, &[one, other, "{text: closing}"], 2);
    assert_eq!(json["stop_reason"], "repeated_call");
}

#[test]
fn l26_another_call_in_between_begins_anew() {
    let lab = Lab::with_a_txt().config("loop: {max_repeated_calls: 2, on_repeat: stop}\n");
    let (json, _) = play(&lab, &[READ, LIST, READ, DONE], 0);
    assert_eq!(json["stop_reason"], "llm_done");
}

#[test]
fn l27_two_calls_in_turn_end_the_run_with_the_third_round() {
    let lab = Lab::with_a_txt().config("loop: {repeat_window: 6, on_repeat: stop}\n");
    let (json, requests) = play(&lab, &[READ, LIST, READ, LIST, READ, LIST, "{text: closing}"], 2);
    assert_eq!((&json["stop_reason"], requests.len()), (&"repeated_call".into(), 7));
    assert!(last(&requests[6]).contains("no more tools can be called"));
    assert_eq!(holding(&requests[6], "the same 2 calls (`read_file`, `list_files`)"), 1);
    let off = Lab::with_a_txt().config("loop: {repeat_window: 5, on_repeat: stop}\n");
    play(&off, &[READ, LIST, READ, LIST, READ, LIST, DONE], 0);
}

#[test]
fn l28_consecutive_errors_end_the_run_and_a_success_begins_anew() {
    let lab = Lab::with_a_txt().config("loop: {max_consecutive_errors: 3}\n");
    let fails: Vec<String> = (1..=4)
        .map(|n| {
            json!({"calls": [{"name": "read_file", "arguments": {"path": format!("none{n}")}}]}).to_string()
        })
        .collect();
    let [a, b, c, d] = [&fails[0], &fails[1], &fails[2], &fails[3]].map(String::as_str);
    let (json, _) = play(&lab, &[a, b, READ, c, d, DONE], 0);
    assert_eq!(json["stop_reason"], "llm_done");
    let (json, requests) = play(&lab, &[a, b, c, "{text: none is there}"], 2);
    assert_eq!(
        (&json["stop_reason"], &json["output"]),
        (&"consecutive_errors".into(), &"none is there".into())
    );
    assert!(
        last(&requests[2]).contains("2 calls in a row failed, and a few more end the run"),
        "{}",
        last(&requests[2])
    );
    assert_eq!(requests.len(), 4);
}

#[test]
fn l29_errors_of_networks_are_not_counted() {
    let lab = Lab::with_a_txt().config("loop: {max_consecutive_errors: 2, on_repeat: stop}\n");
    let refused: Vec<String> =
        (1..=3).map(|n| running(&format!("echo 'try {n}: 503 Service Unavailable' >&2; exit 1"))).collect();
    let [a, b, c] = [&refused[0], &refused[1], &refused[2]].map(String::as_str);
    let (json, _) = play(&lab, &[a, b, c, READ, DONE], 0);
    assert_eq!(json["stop_reason"], "llm_done");
}

#[test]
fn l30_zero_turns_a_breaker_off() {
    let lab = Lab::with_a_txt().config("loop: {max_repeated_calls: 0}\n");
    let append = running("echo x >> f");
    let (_, requests) = play(&lab, &[&[append.as_str(); 10][..], &[DONE]].concat(), 0);
    assert_eq!((lab.read("f").lines().count(), holding(&requests[10], "[SYSTEM]")), (10, 0));
}

#[test]
fn a_tool_that_fails_in_the_same_way_with_other_arguments_makes_no_progress() {
    let edits: Vec<String> = (1..=6)
        .map(|n| json!({"calls": [{"name": "edit_file", "arguments": {"path": "a.txt", "old_str": format!("nothing {n}"), "new_str": "x"}}]}).to_string())
        .collect();
    let mut turns: Vec<&str> = edits.iter().flat_map(|edit| [READ, edit.as_str()]).collect();
    turns.push("{text: it does not work}");
    let (json, requests) = play(&Lab::with_a_txt(), &turns, 2);
    assert_eq!((&json["stop_reason"], &json["output"]), (&"no_progress".into(), &"it does not work".into()));
    assert!(last(&requests[8]).contains("`edit_file` failed in 4 answers"), "{}", last(&requests[8]));
}

#[test]
fn a_file_that_goes_back_and_forth_makes_no_progress() {
    let write = |content: &str| {
        json!({"calls": [{"name": "write_file", "arguments": {"path": "b.txt", "content": content, "mode": "overwrite"}}]}).to_string()
    };
    let (one, two) = (write("one"), write("two"));
    let look =
        |n: usize| json!({"calls": [{"name": "grep", "arguments": {"text": format!("{n}")}}]}).to_string();
    let looks: Vec<String> = (0..8).map(look).collect();
    let turns: Vec<&str> = looks
        .iter()
        .enumerate()
        .flat_map(|(n, look)| [if n % 2 == 0 { one.as_str() } else { &two }, look])
        .collect();
    let lab = Lab::with_a_txt().config("loop: {on_repeat: stop}\n");
    let (json, requests) = play(&lab, &[&turns[..10], &["{text: closing}"]].concat(), 2);
    assert_eq!(json["stop_reason"], "no_progress");
    assert_eq!(requests.len(), 10, "the third way back is the fifth edit");
}

#[test]
fn an_action_that_is_only_announced_is_asked_for_once() {
    let announced = "{text: 'The file is read. Now let me fix the first line:'}";
    let (json, requests) = play(&Lab::with_a_txt(), &[READ, announced, LIST, DONE], 0);
    assert!(last(&requests[2]).contains("announces an action"), "{}", last(&requests[2]));
    assert_eq!(json["output"], "done");
    let (json, requests) =
        play(&Lab::with_a_txt(), &[READ, announced, "{text: 'Sure, let me edit it now.'}"], 2);
    assert_eq!((&json["stop_reason"], requests.len()), (&"no_progress".into(), 3));
    let (json, requests) =
        play(&Lab::with_a_txt().config("loop: {max_announcements: 0}\n"), &[READ, announced], 0);
    assert_eq!((&json["stop_reason"], requests.len()), (&"llm_done".into(), 2));
}

#[test]
fn an_answer_that_was_questioned_is_not_lost() {
    let (json, _) = play(
        &Lab::with_a_txt(),
        &[READ, "{text: 'All is well. Let me check the rest.'}", "{text: It is done.}"],
        0,
    );
    assert_eq!(json["output"], "All is well. Let me check the rest.\n\nIt is done.");
}

#[test]
fn a_model_that_cannot_act_announces_nothing() {
    let server = Server::yaml(&["{text: 'Now let me check the tests.'}"]);
    Lab::with_a_txt().run(&server, &["--agent", "plan"]).exits(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_answer_that_is_cut_and_begins_again_makes_no_progress() {
    let cut = "{text: 'I write the schema first. Wait, I also write the settings. Actually, the schema.', finish: length}";
    let (json, requests) = play(&Lab::with_a_txt(), &[cut; 4], 2);
    assert_eq!((&json["stop_reason"], requests.len()), (&"no_progress".into(), 3));
}

#[test]
fn each_run_of_a_session_begins_anew() {
    let lab = Lab::with_a_txt();
    lab.run(&Server::yaml(&[READ, READ, DONE]), &[]).exits(0);
    let resumed = Server::yaml(&[READ, READ, DONE]);
    lab.resume(&resumed, &["go on"]).exits(0);
    assert_eq!(holding(&resumed.requests()[2], "[SYSTEM]"), 0);
}

#[test]
fn the_keys_of_what_makes_no_progress_are_obeyed() {
    let edit = |old: &str| json!({"name": "edit_file", "arguments": {"path": "a.txt", "old_str": old, "new_str": "x"}});
    let write =
        |content: &str| json!({"name": "write_file", "arguments": {"path": "b.txt", "content": content}});
    let cat = |note: &str| json!({"name": "run_command", "arguments": {"command": format!("cat long.txt # {note}")}});
    let calls = |made: &[Value]| -> Vec<Value> { made.iter().map(|call| json!({"calls": [call]})).collect() };
    let cut =
        json!({"text": "This is the beginning of a long answer about the project.", "finish": "length"});
    for (key, least, turns) in [
        ("max_same_errors", 2, calls(&[edit("no"), cat("one"), edit("none")])),
        ("max_same_results", 2, calls(&[cat("one"), cat("two")])),
        ("max_reverted_edits", 1, calls(&[write("one"), write("two"), write("one")])),
        ("max_repeated_texts", 2, vec![cut.clone(), cut]),
    ] {
        let turns: Vec<String> = turns.iter().map(Value::to_string).chain([DONE.to_owned()]).collect();
        let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
        for (value, code, reason) in [(least, 2, "no_progress"), (0, 0, "llm_done")] {
            let lab = Lab::with_a_txt().config(&format!("loop: {{{key}: {value}, on_repeat: stop}}\n"));
            let lab = lab.file("long.txt", "a line of some length\n".repeat(20));
            assert_eq!(play(&lab, &turns, code).0["stop_reason"], reason, "{key}: {value}");
        }
    }
}
