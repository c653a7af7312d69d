//! The model layer in a whole run: retries, errors, exit codes, streams, keys.

use crate::support::run::{Finished, KEY, Lab, holding};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The events of the newest session, in order.
fn events(lab: &Lab) -> Vec<Value> {
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|mut line| line["record"]["event"].take()).collect()
}

fn of_type(lab: &Lab, kind: &str) -> Vec<Value> {
    events(lab).into_iter().filter(|event| event["type"] == kind).collect()
}

/// What the last record of the journal says about the run.
fn verdict(lab: &Lab) -> Value {
    let mut last = events(lab).pop().unwrap();
    assert_eq!(last["type"], "run_end", "{last}");
    last["result"].take()
}

/// Runs a script; gives back what came of it and how many requests it took.
fn play(lab: &Lab, script: &str, more: &[&str]) -> (Finished, usize) {
    let server = Server::start(script);
    let done = lab.run(&server, more);
    (done, server.requests().len())
}

/// Errors of these statuses, after which waiting costs a test no time.
fn errors(statuses: &[u16]) -> String {
    let turn = |status| format!("  - error: {{status: {status}, retry_after: 0.01}}\n");
    statuses.iter().map(turn).collect()
}

#[test]
fn lr1_rate_limits_and_overload_are_retried_and_told() {
    let lab = Lab::new();
    let (done, requests) =
        play(&lab, &format!("turns:\n{}  - text: done\n", errors(&[429, 503])), &["--json"]);
    let json = done.exits(0).json();
    assert_eq!((requests, &json["requests"], &json["steps"]), (3, &3.into(), &1.into()));
    let (done, requests) = play(&lab, &format!("turns:\n{}  - text: done\n", errors(&[429, 503])), &[]);
    let done = done.exits(0);
    assert_eq!((requests, done.stdout.as_str()), (3, "done\n"));
    assert!(done.stderr.contains("Rate limit reached (rate_limit), asking again 1 of 5"), "{}", done.stderr);
    assert!(done.stderr.contains("Server overloaded (overloaded), asking again 2 of 5"), "{}", done.stderr);
}

#[test]
fn lr1_a_broken_connection_is_retried() {
    let lab = Lab::new();
    let (done, requests) = play(&lab, "turns: [{fault: reset}, {text: done}]", &[]);
    assert_eq!((done.exits(0).stdout.as_str(), requests), ("done\n", 2));
    assert_eq!(of_type(&lab, "retry")[0]["kind"], "network");
}

#[test]
fn lr1_a_server_that_is_not_there_is_tried_again_and_named() {
    // Fault C7: it was tried again five times in 14 s.
    let lab = Lab::new().config("llm: {retries: 5}\n");
    let server = Server::start("turns: [{text: never}]");
    let url = server.url();
    drop(server);
    let done = lab.agent(&["run", "task", "--model", "openai/mock", "--api-base", &url]).exits(1);
    assert_eq!(of_type(&lab, "retry").len(), 1);
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    assert!(done.stderr.contains(host) && done.stderr.contains("is the server running"), "{}", done.stderr);
    assert_eq!(verdict(&lab)["error"]["kind"], "network");
}

#[test]
fn lr2_a_wait_that_is_too_long_ends_the_run_at_once_and_is_named() {
    for (config, wait, named) in [
        ("{}\n", "86400", "the server asks to wait 86400s, and llm.max_retry_after allows 120s"),
        ("llm: {max_retry_after: 0}\n", "1", "the server asks to wait 1s, and llm.max_retry_after allows 0s"),
        ("llm: {timeouts: {call_seconds: 20}}\n", "30", "the server asks to wait 30s, and only 19s are left"),
    ] {
        let lab = Lab::new().config(config);
        let script = format!("turns: [{{error: {{status: 429, retry_after: {wait}}}}}, {{text: never}}]");
        let (done, requests) = play(&lab, &script, &["--json"]);
        let json = done.exits(1).json();
        assert_eq!((requests, &json["error"]["kind"]), (1, &"rate_limit".into()), "{config}");
        assert_eq!(json["error"]["retryable"], true, "{config}");
        assert!(json["error"]["message"].as_str().unwrap().contains(named), "{json}");
        assert!(json["duration_seconds"].as_f64().unwrap() < 5.0, "{json}");
    }
}

#[test]
fn lr1_a_server_that_stays_silent_is_asked_again() {
    let lab = Lab::new().config("llm: {timeouts: {first_byte_seconds: 1}}\n");
    let (done, requests) = play(&lab, "turns: [{fault: hang}, {text: done}]", &[]);
    assert_eq!((done.exits(0).stdout.as_str(), requests), ("done\n", 2));
    assert_eq!(of_type(&lab, "retry")[0]["kind"], "timeout");
}

#[test]
fn lr1_other_errors_are_not_retried() {
    let lab = Lab::new();
    for (error, kind) in [
        ("status: 400", "request"),
        ("status: 404", "request"),
        ("status: 422", "request"),
        ("status: 429, code: insufficient_quota", "quota"),
    ] {
        let script = format!("turns: [{{error: {{{error}}}}}, {{text: never}}]");
        let (done, requests) = play(&lab, &script, &["--json"]);
        let json = done.exits(1).json();
        assert_eq!((requests, &json["error"]["kind"]), (1, &kind.into()), "{error}");
        assert_eq!((&json["stop_reason"], &json["status"]), (&"llm_error".into(), &"failed".into()));
        assert_eq!(json["error"]["retryable"], false, "{error}");
    }
}

#[test]
fn lr2_the_server_says_how_long_to_wait() {
    let server = Server::start("turns: [{error: {status: 429, retry_after: 1}}, {text: done}]");
    Lab::new().run(&server, &[]).exits(0);
    let requests = server.requests();
    let gap = requests[1].arrived.duration_since(requests[0].arrived);
    assert!(gap >= Duration::from_secs(1), "{gap:?}");
    assert_eq!(requests[0].bytes, requests[1].bytes, "the same request");
}

#[test]
fn lr2_a_wait_can_be_interrupted_and_one_that_exceeds_the_time_of_the_step_is_not_started() {
    let lab = Lab::new();
    let server = Server::start("turns: [{error: {status: 429, retry_after: 100}}, {text: never}]");
    let run = lab.start_run(&server, &["-v"]);
    run.wait_for_stderr("asking again 1 of 5 in 100.0 s");
    run.signal(Signal::INT);
    run.finish().exits(130);
    assert_eq!(of_type(&lab, "retry")[0]["delay_ms"], 100_000);

    let lab = Lab::new();
    let script = "turns: [{error: {status: 429, retry_after: 100}}, {text: never}]";
    let (done, requests) = play(&lab, script, &["--step-timeout", "30"]);
    done.exits(1);
    assert_eq!((requests, &verdict(&lab)["error"]["kind"]), (1, &"rate_limit".into()));
}

#[test]
fn lr3_back_off_doubles_and_its_jitter_only_shortens_it() {
    let lab = Lab::new();
    let server = Server::start("turns: [{error: {status: 500}}, {error: {status: 502}}, {text: done}]");
    lab.run(&server, &[]).exits(0);
    let requests = server.requests();
    let retries = of_type(&lab, "retry");
    for (number, full) in [500, 1000].into_iter().enumerate() {
        let delay = retries[number]["delay_ms"].as_u64().unwrap();
        assert!((full * 3 / 4..=full).contains(&delay), "{delay}");
        let gap = requests[number + 1].arrived.duration_since(requests[number].arrived);
        assert!(gap >= Duration::from_millis(delay), "{gap:?} after {delay} ms");
    }
}

#[test]
fn lr4_after_the_retries_the_run_fails() {
    for (config, expected) in [("{}\n", 6), ("llm: {retries: 0}\n", 1), ("llm: {retries: 2}\n", 3)] {
        let lab = Lab::new().config(config);
        let (done, requests) = play(&lab, &format!("turns:\n{}", errors(&[503; 9])), &["--json"]);
        let json = done.exits(1).json();
        assert_eq!((requests, &json["requests"]), (expected, &expected.into()), "{config}");
        assert_eq!(json["error"]["kind"], "overloaded");
        assert_eq!(json["error"]["retryable"], true);
        if expected > 1 {
            let message = json["error"]["message"].as_str().unwrap();
            assert!(message.contains(&format!("after {expected} attempts")), "{message}");
        }
    }
}

#[test]
fn lr5_a_stream_cut_before_its_first_delta_is_retried() {
    for fault in ["cut", "close"] {
        let lab = Lab::new();
        let script = format!("turns: [{{text: unseen, fault: {{{fault}: 0}}}}, {{text: done}}]");
        let (done, requests) = play(&lab, &script, &[]);
        let done = done.exits(0);
        assert_eq!((done.stdout.as_str(), requests), ("done\n", 2), "{fault}");
        assert!(!done.stderr.contains("unseen"), "{}", done.stderr);
    }
}

#[test]
fn lr5_text_that_was_shown_of_a_broken_stream_is_discarded_and_the_step_is_requested_again() {
    for (piece, fault, kind) in [
        ("text: uvwxyz", "cut: 2", "cut_stream"),
        ("text: uvwxyz", "close: 2", "network"),
        ("text: uvwxyz", "stall: 2", "timeout"),
        ("thinking: uvwxyz", "cut: 2", "cut_stream"),
    ] {
        let lab = Lab::new().config("llm: {timeouts: {silence_seconds: 1}}\n");
        let script = format!("turns: [{{{piece}, chunk: 1, fault: {{{fault}}}}}, {{text: done}}]");
        let (done, requests) = play(&lab, &script, &["-v"]);
        let done = done.exits(0);
        assert_eq!((requests, done.stdout.as_str()), (2, "done\n"), "{piece} {fault}");
        // Letters that no id of a session has.
        assert!(done.stderr.contains("uv") && !done.stderr.contains("uvw"), "{}", done.stderr);
        let line = format!("({kind}), the text above is discarded, asking again 1 of 5 in ");
        assert!(done.stderr.contains(&line), "{}", done.stderr);
        let retry = &of_type(&lab, "retry")[0];
        assert_eq!((&retry["attempt"], &retry["answer_discarded"]), (&1.into(), &true.into()), "{retry}");
        assert_eq!((&retry["retry"], &retry["max_retries"]), (&1.into(), &5.into()), "{retry}");
    }
}

#[test]
fn lr5_a_client_of_the_stream_can_drop_the_text_of_a_discarded_answer() {
    let server = Server::start("turns: [{text: abcdef, chunk: 1, fault: {cut: 2}}, {text: done, chunk: 2}]");
    let done = Lab::new().run(&server, &["--output-format", "stream-json"]).exits(0);
    let (mut text, mut attempts) = (String::new(), Vec::new());
    for line in done.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "request_sent" => attempts.push(event["attempt"].as_u64().unwrap()),
            "text" => text.push_str(event["text"].as_str().unwrap()),
            "retry" if event["answer_discarded"] == true => {
                assert_eq!((event["attempt"].as_u64(), text.as_str()), (attempts.last().copied(), "ab"));
                text.clear();
            }
            "result" => assert_eq!(event["output"], "done"),
            _ => {}
        }
    }
    assert_eq!((text.as_str(), attempts), ("done", vec![1, 2]));
}

#[test]
fn lr5_a_discarded_answer_counts_as_its_worst_case_unless_its_usage_was_reported() {
    let config = "costs: {max_tokens: 20000}\nllm: {max_output_tokens: 6000}\n";
    let lab = Lab::new().config(config);
    let script = "turns: [{text: abcdef, chunk: 1, fault: {cut: 2}, repeat: 9}]";
    let (done, requests) = play(&lab, script, &["--json"]);
    let json = done.exits(2).json();
    assert_eq!(json["stop_reason"], "budget_exceeded", "{json}");
    assert!((1..6).contains(&requests), "{requests} requests of at least 6,000 tokens each: {json}");
}

#[test]
fn lr5_an_unstreamed_answer_that_breaks_off_is_retried_because_nothing_was_shown() {
    let lab = Lab::new();
    let (done, requests) =
        play(&lab, "turns: [{text: abcdef, fault: {close: 2}}, {text: done}]", &["--no-stream"]);
    assert_eq!((done.exits(0).stdout.as_str(), requests), ("done\n", 2));
}

#[test]
fn o07_a_tool_call_streamed_character_by_character_runs() {
    let lab = Lab::new();
    let script = "turns:
  - {text: I write, chunk: 1, calls: [
      {name: write_file, arguments: {path: a.txt, content: \"ünï \\\"1\\\"\\n\"}},
      {name: write_file, arguments: {path: b.txt, content: \"2\\n\"}}]}
  - text: done
";
    play(&lab, script, &["--mode", "yolo"]).0.exits(0);
    assert_eq!((lab.read("a.txt").as_str(), lab.read("b.txt").as_str()), ("ünï \"1\"\n", "2\n"));
}

/// A turn that answers with these server-sent events, word for word.
fn sse(body: &str) -> String {
    let body = serde_json::to_string(body).unwrap();
    format!("  - fault: {{http: {{headers: {{content-type: text/event-stream}}, body: {body}}}}}\n")
}

#[test]
fn o07_a_missing_done_is_tolerated_and_a_missing_end_is_not() {
    let call = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":",
        "{\"name\":\"write_file\",\"arguments\":\"{\\\"path\\\":\\\"a\\\",\"}}]}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":",
        "{\"arguments\":\"\\\"content\\\":\\\"x\\\"}\"}}]}}]}\r\n\r\n"
    );
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}";
    let lab = Lab::new();
    let script = format!("turns:\n{}  - text: done\n", sse(&format!("{call}{finish}")));
    let (done, requests) = play(&lab, &script, &["--mode", "yolo"]);
    done.exits(0);
    assert_eq!((lab.read("a").as_str(), requests), ("x", 2));

    let lab = Lab::new().config("llm: {retries: 0}\n");
    let (done, _) = play(&lab, &format!("turns:\n{}", sse(call)), &["--mode", "yolo", "--json"]);
    assert_eq!(done.exits(1).json()["error"]["kind"], "cut_stream");
    assert!(!lab.exists("a"));
}

#[test]
fn o08_usage_in_the_final_chunk_without_choices_is_counted() {
    let script = "turns:
  - calls: [{name: list_files, arguments: {}}]
    usage: {input: 1000, cached_read: 700, output: 50, reasoning: 20}
  - text: done
    usage: {input: 2000, output: 5}
";
    let expected = serde_json::json!(
        {"input": 3000, "cached_read": 700, "cached_write": 0, "output": 55, "reasoning": 20});
    let (done, _) = play(&Lab::new(), script, &["--json"]);
    assert_eq!(done.exits(0).json()["usage"], expected);

    let lab = Lab::new();
    let server = Server::start(script);
    let done = lab.run(&server, &[]).exits(0);
    for request in server.requests() {
        assert_eq!(request.body["stream_options"]["include_usage"], true);
    }
    assert_eq!(verdict(&lab)["usage"], expected);
    assert!(done.stderr.contains("Tokens: 3,700 in (700 cached), 55 out"), "{}", done.stderr);

    let final_chunk = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":4,",
        "\"prompt_tokens_details\":{\"cached_tokens\":10}}}\n\ndata: [DONE]\n\n"
    );
    let (done, _) = play(&lab, &format!("turns:\n{}", sse(final_chunk)), &["--json"]);
    let json = done.exits(0).json();
    assert_eq!(json["usage"]["input"], 20);
    assert_eq!((&json["usage"]["cached_read"], &json["usage"]["output"]), (&10.into(), &4.into()));
}

#[test]
fn l15_a_provider_error_fails_the_run_with_its_cause_and_leaves_a_session() {
    let script = "turns: [{error: {status: 400, message: the prompt is not to my liking}}]";
    let lab = Lab::new();
    let (done, requests) = play(&lab, script, &[]);
    let done = done.exits(1);
    assert_eq!((requests, done.stdout.as_str()), (1, ""));
    for part in ["127.0.0.1", "400", "the prompt is not to my liking"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let verdict = verdict(&lab);
    assert_eq!((&verdict["status"], &verdict["stop_reason"]), (&"failed".into(), &"llm_error".into()));
    assert_eq!(verdict["error"]["kind"], "request");
    let listed = lab.agent(&["sessions", "list"]).exits(0).stdout;
    assert!(listed.contains(verdict["session_id"].as_str().unwrap()), "{listed}");
}

#[test]
fn l16_a_refused_key_exits_4_after_one_request() {
    for status in [401, 403] {
        let lab = Lab::new();
        let script = format!(
            "turns: [{{fault: {{http: {{status: {status}, headers: {{retry-after: '0', x-should-retry: 'true'}}, \
             body: '{{\"error\": {{\"message\": \"bad key\"}}}}'}}}}}}, {{text: never}}]"
        );
        let (done, requests) = play(&lab, &script, &["--json"]);
        let done = done.exits(4);
        assert_eq!(requests, 1, "{status}");
        let json = done.json();
        assert_eq!((&json["stop_reason"], &json["status"]), (&"auth_error".into(), &"failed".into()));
        assert_eq!((&json["error"]["kind"], &json["error"]["retryable"]), (&"auth".into(), &false.into()));
        assert!(done.stderr.contains("bad key") && done.stderr.contains("--api-key"), "{}", done.stderr);
    }
}

#[test]
fn l16_no_key_and_no_server_exits_4_with_three_ways_on() {
    let lab = Lab::new();
    let done = lab.agent(&["run", "task"]).exits(4);
    for way in ["--model openai/NAME", "--model local/NAME", "agent demo"] {
        assert!(done.stderr.contains(way), "{}", done.stderr);
    }
    let done = lab.agent(&["run", "task", "--model", "openai/gpt", "--json"]).exits(4);
    let json = done.json();
    // Fault B20: it was null, against the table of exit codes.
    assert_eq!((&json["stop_reason"], &json["error"]["kind"]), (&"auth_error".into(), &"auth".into()));
    assert!(done.stderr.contains("OPENAI_API_KEY"), "{}", done.stderr);
}

#[test]
fn l19_malformed_arguments_are_told_to_the_model_and_not_run() {
    let lab = Lab::new();
    let script = "turns:
  - calls:
      - {name: write_file, arguments: '{\"path\": \"a.txt\", \"content\":'}
      - {name: list_files, arguments: '{\"path\":'}
  - text: done
";
    let server = Server::start(script);
    lab.run_yolo(&server, &[]).exits(0);
    let told = server.requests()[1].texts("tool");
    assert_eq!(told.len(), 2);
    for text in told {
        assert!(text.starts_with("Error") && text.contains("JSON"), "{text}");
    }
    assert_eq!(fs::read_dir(lab.ws()).unwrap().count(), 0);
    let uses = verdict(&lab)["tools_used"].clone();
    assert_eq!((&uses[0]["success"], &uses[1]["success"]), (&false.into(), &false.into()));
}

#[test]
fn l21_a_call_written_as_text_is_executed_streamed_or_not() {
    let script = "turns:
  - {text: '{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}', chunk: 3}
  - text: done
";
    for more in [&[][..], &["--no-stream"]] {
        let lab = Lab::with_a_txt();
        let server = Server::start(script);
        let done = lab.run(&server, more).exits(0);
        assert_eq!(done.stdout, "done\n");
        assert!(server.requests()[1].texts("tool")[0].contains("alpha"));
        assert!(!done.stderr.contains("\"arguments\""), "shown as text: {}", done.stderr);
    }
}

#[test]
fn l22_ordinary_json_is_an_answer() {
    for json in [r#"{"name":"x"}"#, r#"{"name":"read_file"}"#, r#"{"name":"nope","arguments":{}}"#, "[1,2]"] {
        for more in [&[][..], &["--no-stream"]] {
            let (done, requests) = play(&Lab::new(), &format!("turns: [{{text: '{json}', chunk: 2}}]"), more);
            assert_eq!((done.exits(0).stdout, requests), (format!("{json}\n"), 1));
        }
    }
}

#[test]
fn all_steps_of_a_run_share_one_connection() {
    let lab = (1..=9).fold(Lab::new(), |lab, n| lab.file(&format!("{n}.txt"), "text\n"));
    for more in [&[][..], &["--no-stream"]] {
        let read = "calls: [{name: read_file, arguments: {path: '{i}.txt'}}]";
        let server = Server::start(&format!("turns: [{{repeat: 9, {read}}}, {{text: done}}]"));
        lab.run(&server, more).exits(0);
        assert_eq!((server.requests().len(), server.connections()), (10, 1), "{more:?}");
    }
}

#[test]
fn the_connect_deadline_is_the_configured_one() {
    // A queue for one connection, which is taken: the next attempt is never answered.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.listen(0).unwrap()
    });
    let address = listener.local_addr().unwrap();
    let mut taken = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        taken.push(stream);
    }
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {connect_seconds: 1}}\n");
    let base = format!("http://{address}/v1");
    let done = lab.agent(&["run", "task", "--model", "m", "--api-base", &base, "--json"]).exits(1);
    let json = done.json();
    assert_eq!(json["error"]["kind"], "timeout");
    assert!(done.stderr.contains("no connection within 1s"), "{}", done.stderr);
    assert!(json["duration_seconds"].as_f64().unwrap() < 4.0);
}

#[test]
fn the_first_byte_deadline_is_the_configured_one() {
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {first_byte_seconds: 1}}\n");
    let server = Server::start("turns: [{fault: hang}]");
    let done = lab.run(&server, &[]).exits(1);
    assert!(done.stderr.contains("no response started within 1s"), "{}", done.stderr);
    assert_eq!(verdict(&lab)["error"]["kind"], "timeout");
    server.wait_for_disconnect();
}

#[test]
fn without_streaming_an_answer_has_two_minutes_to_start() {
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {first_byte_seconds: 1}}\n");
    let (done, _) = play(&lab, "turns: [{text: late, delay_ms: 1200}]", &["--no-stream"]);
    assert_eq!(done.exits(0).stdout, "late\n");
}

#[test]
fn the_silence_deadline_is_the_configured_one() {
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {silence_seconds: 1}}\n");
    let server = Server::start("turns: [{text: abc, chunk: 1, fault: {stall: 2}}]");
    let done = lab.run(&server, &[]).exits(1);
    assert!(done.stderr.contains("the answer stopped arriving for 1s"), "{}", done.stderr);
    server.wait_for_disconnect();
}

#[test]
fn the_deadline_of_a_call_holds_for_its_retries_too() {
    for (turn, requests) in [
        ("{fault: hang}", 1),
        ("{text: abcdefghi, chunk: 1, chunk_delay_ms: 300}", 1),
        ("{error: {status: 503, retry_after: 0.4}}", 3),
    ] {
        let lab = Lab::new().config("llm: {timeouts: {call_seconds: 1}}\n");
        let server = Server::start(&format!("turns: [{turn}, {turn}, {turn}, {{fault: hang}}]"));
        let done = lab.run(&server, &[]).exits(1);
        assert!(server.requests().len() <= requests, "{turn}: {}", done.stderr);
        let verdict = verdict(&lab);
        assert_eq!(verdict["stop_reason"], "llm_error", "{turn}");
        assert!(verdict["duration_seconds"].as_f64().unwrap() < 1.9, "{turn}: {verdict}");
    }
}

/// A run that does whatever could give a key away: the loudest log, a log file, a command and a hook that show their
/// environment, a server that repeats the key in its error.
fn indiscreet(lab: Lab, key: &str, args: &[&str]) {
    let lab = lab
        .config("hooks: {pre_tool_use: [{command: 'env > hook.env; cat > hook.json'}]}\ncommands: {env: {CI: '1'}}\n")
        .file("a.txt", "alpha\n");
    let script = format!(
        "turns:
  - calls: [{{name: run_command, arguments: {{command: 'env; cat /proc/self/environ'}}}}]
  - error: {{status: 401, message: 'Incorrect API key provided: {key}'}}
"
    );
    for form in [&["-vv"][..], &["-vv", "--json"]] {
        let server = Server::start(&script);
        let url = server.url();
        let log = lab.outside().join("run.log");
        let mut all = vec!["run", "task", "--api-base", &url, "--mode", "yolo"];
        all.extend(["--log-file", log.to_str().unwrap()]);
        all.extend(args);
        all.extend(form);
        let done = lab.agent(&all).exits(4);
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        for request in requests {
            assert_eq!(request.headers["authorization"], format!("Bearer {key}"));
            assert!(!String::from_utf8_lossy(&request.bytes).contains(key), "in the request's body");
            let elsewhere =
                request.headers.iter().find(|(name, value)| *name != "authorization" && value.contains(key));
            assert_eq!(elsewhere, None);
            assert!(!request.target.contains(key));
        }
        assert!(lab.read("hook.env").contains("AGENT_EVENT=pre_tool_use"), "the hook ran");
        assert!(fs::read_to_string(&log).unwrap().contains("GIT_PAGER=cat"), "the command ran");
        assert!(!done.stdout.contains(key), "{}", done.stdout);
        assert!(!done.stderr.contains(key), "{}", done.stderr);
        assert!(done.stderr.contains("Incorrect API key provided"), "{}", done.stderr);
        assert_eq!(holding(&lab.outside(), key), Vec::<String>::new());
    }
    for args in [&["doctor"][..], &["config", "show", "--origin"], &["sessions", "list"]] {
        let done = lab.agent(args);
        assert!(!done.stdout.contains(key) && !done.stderr.contains(key), "{args:?}");
    }
}

#[test]
fn f07_the_key_of_the_flag_reaches_the_authorization_header_and_nothing_else() {
    indiscreet(Lab::new(), KEY, &["--model", "openai/mock", "--api-key", KEY]);
}

#[test]
fn f07_the_flag_wins_over_the_variable() {
    let lab = Lab::new().env("OPENAI_API_KEY", "sk-from-the-variable");
    let server = Server::start("turns: [{text: hi}]");
    lab.run(&server, &[]).exits(0);
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {KEY}"));
}

#[test]
fn s25_the_key_of_the_providers_variable_is_nowhere_but_in_the_header() {
    let lab = Lab::new().env("OPENAI_API_KEY", "sk-variable-0123456789");
    indiscreet(lab, "sk-variable-0123456789", &["--model", "openai/mock"]);
}

#[test]
fn s25_the_key_of_a_variable_with_any_name_is_nowhere_but_in_the_header() {
    // LANGUAGE is a variable that children otherwise get.
    let lab = Lab::new().env("LANGUAGE", "whispered-0123456789").file(
        "../extra.yaml",
        "llm: {api_key_env: LANGUAGE}\ncommands: {env: {COPY: 'x whispered-0123456789 y'}}\n",
    );
    let extra = lab.outside().join("extra.yaml");
    let args = ["--model", "openai/mock", "-c", extra.to_str().unwrap()];
    // The file that the user has written holds the key; everything else may not.
    indiscreet_with_copy(&lab, &extra, &args);
}

/// As [`indiscreet`], where a configuration file of the user's holds the key as a value for children.
fn indiscreet_with_copy(lab: &Lab, extra: &Path, args: &[&str]) {
    let key = "whispered-0123456789";
    let server = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: 'env > child.env'}}]}, {text: done}]",
    );
    let url = server.url();
    let mut all = vec!["run", "task", "--mode", "yolo", "-vv", "--api-base", &url];
    all.extend(args);
    let done = lab.agent(&all).exits(0);
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {key}"));
    assert!(lab.read("child.env").contains("GIT_PAGER=cat"));
    assert!(!done.stderr.contains(key) && !done.stdout.contains(key), "{}", done.stderr);
    assert_eq!(holding(&lab.outside(), key), [extra.display().to_string()]);
}
