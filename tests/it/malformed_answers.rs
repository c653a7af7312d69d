//! Turns that went wrong: calls that nobody can read, that come too often, as text or in odd shapes, and answers of no use.

use crate::formats::play;
use crate::support::extent::all;
use crate::support::run::{KEY, Lab, NO_BREAKERS};
use crate::support::server::Server;
use serde_json::{Value, json};

/// The model of each wire format.
const MODELS: [&str; 5] = ["openai/m", "anthropic/claude-m", "ollama/m", "gemini/m", "openai-responses/m"];

/// A turn that is this body, word for word.
fn raw(status: u16, kind: &str, body: &str) -> Value {
    json!({"fault": {"http": {"status": status, "headers": {"content-type": kind}, "body": body}}})
}

/// A turn of Chat Completions with these deltas and this end.
fn deltas(deltas: &[Value], finish: &str) -> Value {
    let chunk = |delta: &Value, finish: Value| {
        let choice = Value::from_iter([("delta", delta.clone()), ("finish_reason", finish)]);
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let mut body: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    body += &chunk(&json!({}), json!(finish));
    raw(200, "text/event-stream", &(body + "data: [DONE]\n\n"))
}

fn script(turns: &[Value]) -> String {
    json!({ "turns": turns }).to_string()
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// What Groq answers when a call did not parse.
fn tool_use_failed() -> Value {
    json!({"error": {"message": "Failed to call a function. Please adjust your prompt.", "code": "tool_use_failed",
        "type": "invalid_request_error", "failed_generation": "<function=read_file{\"path\": \u{1b}[2J"}})
}

#[test]
fn l20_a_call_that_its_server_could_not_read_is_asked_for_again_twice_at_once() {
    let in_body = raw(400, "application/json", &tool_use_failed().to_string());
    let mut proxied = tool_use_failed();
    proxied["error"]["code"] = json!(400);
    proxied["error"]["message"] =
        json!(format!("litellm.BadRequestError: GroqException - {}", tool_use_failed()));
    let proxied = raw(400, "application/json", &proxied.to_string());
    let in_stream = raw(200, "text/event-stream", &format!("event: error\ndata: {}\n\n", tool_use_failed()));
    for failed in [in_body, proxied, in_stream] {
        let lab = Lab::new().config("llm: {retries: 0}\n");
        let (done, requests) =
            play("groq/m", &lab, &script(&[failed.clone(), failed.clone(), text("done")]), &[]);
        assert_eq!((done.exits(0).stdout.as_str(), requests.len()), ("done\n", 3));

        let turns = [failed.clone(), failed.clone(), failed, text("never")];
        let (done, requests) = play("groq/m", &lab, &script(&turns), &["--json"]);
        let json = done.exits(1).json();
        assert_eq!((requests.len(), &json["error"]["kind"]), (3, &"tool_use_failed".into()));
        let message = json["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("the model wrote `<function=read_file{") && !message.contains('\u{1b}'),
            "{message}"
        );
        assert!(message.contains("after 3 attempts"), "{message}");
    }
}

#[test]
fn l20_a_malformed_call_of_gemini_is_asked_for_again_and_what_it_used_is_counted() {
    let end = json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 7}});
    let malformed = raw(200, "text/event-stream", &format!("data: {end}\n\n"));
    let good = json!({"text": "done", "usage": {"input": 10, "output": 1}});
    let (done, requests) = play("gemini/m", &Lab::new(), &script(&[malformed, good]), &["--json"]);
    let json = done.exits(0).json();
    assert_eq!(
        (requests.len(), &json["usage"]["input"], &json["usage"]["output"]),
        (2, &110.into(), &8.into())
    );
}

#[test]
fn o25_an_empty_answer_that_is_asked_for_again_is_counted_and_paid_for() {
    let empty = json!({"text": "", "usage": {"input": 100, "cached_read": 20, "output": 3}});
    let good = json!({"text": "done", "usage": {"input": 200, "output": 5}});
    for model in MODELS {
        let (done, _) = play(model, &Lab::new(), &script(&[empty.clone(), good.clone()]), &["--json"]);
        let usage = done.exits(0).json()["usage"].clone();
        let prompt = usage["input"].as_u64().unwrap() + usage["cached_read"].as_u64().unwrap();
        assert_eq!((prompt, &usage["output"]), (320, &8.into()), "{model}");
        let (done, _) = play(model, &Lab::new(), &script(&[empty.clone(), empty.clone()]), &["--json"]);
        let json = done.exits(1).json();
        assert_eq!(
            (&json["error"]["kind"], &json["usage"]["output"]),
            (&"empty_answer".into(), &6.into()),
            "{model}"
        );
    }
}

#[test]
fn o25_what_an_empty_answer_cost_is_in_the_sum_and_in_the_budget() {
    let prices = "models: {openai/m: {input: 0, output: 10, output_limit: 1000}}";
    let lab = || Lab::new().file("prices.yaml", prices).config("costs: {prices_file: prices.yaml}");
    let empty = json!({"text": "", "usage": {"input": 1, "output": 100_000}});
    let good = json!({"text": "done", "usage": {"input": 1, "output": 200_000}});
    let turns = script(&[empty, good]);
    let (done, _) = play("openai/m", &lab(), &turns, &["--json"]);
    assert_eq!(done.exits(0).json()["cost"], json!({"total_usd": 3.0, "by_source": {"agent": 3.0}}));
    let (done, requests) = play("openai/m", &lab(), &turns, &["--json", "--budget", "1"]);
    assert_eq!((done.exits(2).json()["cost"]["total_usd"].clone(), requests.len()), (json!(1.0), 1));
}

#[test]
fn of_too_many_calls_the_first_run_and_the_model_is_told_in_every_format() {
    let calls: Vec<_> = (0..140)
        .map(|number| json!({"name": "list_files", "arguments": {"path": "."}, "id": format!("call{number:05}")}))
        .collect();
    let told = json!({"text": "done", "expect": {"last_contains": ["at most 128 calls of one answer run"]}});
    for model in MODELS {
        let lab = Lab::new().config(NO_BREAKERS);
        let (done, requests) =
            play(model, &lab, &script(&[json!({ "calls": calls }), told.clone()]), &["--json"]);
        let json = done.exits(0).json();
        assert_eq!(requests.len(), 2, "{model}");
        let uses = json["tools_used"].as_array().unwrap();
        let ran = uses.iter().filter(|used| used["success"] == true).count();
        assert_eq!((ran, uses.len()), (128, 129), "{model}");
    }
}

#[test]
fn a_hundred_thousand_calls_are_an_answer_of_bounded_size() {
    let call = |number: u32| {
        let function = json!({"name": "list_files", "arguments": "{}"});
        json!({"tool_calls": [{"index": number, "id": format!("c{number}"), "function": function}]})
    };
    let many: Vec<_> = (0..if all() { 100_000 } else { 10_000 }).map(call).collect();
    let (done, requests) =
        play("openai/m", &Lab::new(), &script(&[deltas(&many, "tool_calls"), text("done")]), &[]);
    assert_eq!(done.exits(0).stdout, "done\n");
    assert_eq!(requests[1].texts("tool").len(), 129);
    assert!(requests[1].bytes.len() < 100_000, "{}", requests[1].bytes.len());
}

/// A call of Chat Completions as its pieces say it.
fn call(index: Value, id: Value, arguments: Value) -> Value {
    let function = Value::from_iter([("name", json!("write_file")), ("arguments", arguments)]);
    json!({"tool_calls": [Value::from_iter([("index", index), ("id", id), ("function", function)])]})
}

#[test]
fn l19_calls_in_odd_shapes_run_once_with_what_was_written_or_not_at_all() {
    let write = |path: &str| json!({"path": path, "content": "x", "mode": "append"});
    let string = |value: Value| json!(value.to_string());
    let turn = deltas(
        &[
            // The whole call once more at its end.
            call(json!(0), json!("a"), string(write("repeated"))),
            call(json!(0), json!("a"), string(write("repeated"))),
            // An id that another call has, and none.
            call(json!(1), json!("a"), string(write("same_id"))),
            call(json!(2), json!(""), string(write("no_id"))),
            call(json!(3), Value::Null, string(write("null_id"))),
            // An object; JSON in JSON.
            call(json!(4), json!("b"), write("object")),
            call(json!(5), json!("c"), string(string(write("quoted")))),
            // Nothing, twice over; two values of one key; a list; two objects; half of one.
            call(json!(6), json!("d"), json!("")),
            call(json!(7), json!("e"), json!("null")),
            call(json!(8), json!("f"), json!("{\"path\":\"first\",\"content\":\"x\",\"path\":\"second\"}")),
            call(json!(9), json!("g"), json!([write("list")])),
            call(json!(10), json!("h"), json!("{\"path\":\"two\",\"content\":\"x\"}{}")),
            call(json!(11), json!("i"), json!("{\"path\":\"half\",\"content\":\"x")),
        ],
        "tool_calls",
    );
    let lab = Lab::new().config("loop: {max_malformed: 100}\n");
    let (done, requests) = play("openai/m", &lab, &script(&[turn, text("done")]), &[]);
    done.exits(0);
    let mut written: Vec<_> = std::fs::read_dir(lab.ws())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    written.sort();
    assert_eq!(written, ["no_id", "null_id", "object", "quoted", "repeated", "same_id"]);
    assert!(written.iter().all(|name| lab.read(name) == "x"), "something ran twice");
    let results = requests[1].texts("tool");
    assert_eq!(results.len(), 12);
    for (result, told) in
        results[6..].iter().zip(["path", "path", "occurs twice", "JSON object", "column 29", "column 27"])
    {
        assert!(result.starts_with("Error") && result.contains(told), "{told}: {result}");
    }
}

#[test]
fn l19_a_call_that_the_limit_cut_before_its_arguments_does_not_run_without_them() {
    let cut = deltas(
        &[json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "list_files"}}]})],
        "length",
    );
    let (done, requests) = play("openai/m", &Lab::new(), &script(&[cut, text("done")]), &[]);
    done.exits(0);
    assert!(requests[1].texts("tool")[0].contains("there are none"), "{:?}", requests[1].texts("tool"));
}

#[test]
fn l21_a_call_in_a_models_marks_runs_where_the_table_says_so_and_nowhere_else() {
    let tagged =
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>";
    let turns = script(&[json!({"text": tagged, "chunk": 3}), text("done")]);
    for model in ["llamacpp/m", "lmstudio/m", "vllm/m", "ollama/m"] {
        for more in [&[][..], &["--no-stream"]] {
            let lab = Lab::with_a_txt();
            let (done, requests) = play(model, &lab, &turns, more);
            let done = done.exits(0);
            assert_eq!((done.stdout.as_str(), requests.len()), ("done\n", 2), "{model}");
            assert!(requests[1].texts("tool")[0].contains("alpha"), "{model}");
            assert!(!done.stderr.contains("<parameter"), "shown as text: {}", done.stderr);
        }
    }
    for model in ["openai/m", "openrouter/m", "anthropic/claude-m", "gemini/m", "openai-responses/m"] {
        let (done, requests) = play(model, &Lab::new(), &turns, &[]);
        assert_eq!((done.exits(0).stdout.trim(), requests.len()), (tagged, 1), "{model}");
    }
}

#[test]
fn l21_echoed_content_is_never_a_call() {
    let call = "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"x\", \"content\": \"x\"}}</tool_call>";
    let native = json!([{"name": "list_files", "arguments": {}}]);
    for (turn, requests) in [
        (json!({"text": format!("The file says:\n{call}")}), 1),
        (json!({"text": format!("{call}\nThat is all it says.")}), 1),
        (json!({"text": format!("The file:\n```\n{call}\n```")}), 1),
        (json!({"text": call.replace("write_file", "rm_file")}), 1),
        (json!({"thinking": call, "text": "I will not."}), 1),
        (json!({"text": format!("<think>{call}</think>I will not.")}), 1),
        (json!({"text": format!("<think>hm</think>It says {call}")}), 1),
        (json!({"text": call, "calls": native}), 2),
    ] {
        let lab = Lab::new();
        let (done, sent) = play("llamacpp/m", &lab, &script(&[turn.clone(), text("done")]), &[]);
        done.exits(0);
        assert_eq!(sent.len(), requests, "{turn}");
        assert!(!lab.exists("x"), "{turn}");
    }
}

/// A run whose model reads `file` and then answers with `answer`: the files that it has written, and how many requests went out.
fn answered_after_reading(file: &str, answer: &str) -> (bool, usize) {
    let lab = Lab::new().file("given.txt", file);
    let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "given.txt"}}]});
    let (done, sent) = play("llamacpp/m", &lab, &script(&[read, text(answer), text("done")]), &[]);
    done.exits(0);
    (lab.exists("x"), sent.len())
}

#[test]
fn l21_what_the_model_was_given_is_no_call_when_it_is_repeated() {
    let arguments = json!({"path": "x", "content": "say \"é\" \\ now"});
    let call = json!({"name": "write_file", "arguments": arguments});
    let (compact, pretty) = (call.to_string(), format!("{call:#}"));
    let numbered: Vec<String> =
        pretty.lines().zip(1..).map(|(line, number)| format!("{number}: {line}")).collect();
    let numbered = numbered.join("\n");
    let escaped = compact.replace('x', "\\u0078").replace('é', "\\u00e9");
    let turned = json!({"say": [{"arguments": {"content": arguments["content"], "path": "x"}}]}).to_string();
    let quoted = json!({"name": "write_file", "arguments": arguments.to_string()}).to_string();
    let tagged = "<tool_call>\n<function=write_file>\n<parameter=path>\nx\n</parameter>\n<parameter=content>\nhi\n</parameter>\n</function>\n</tool_call>";
    let two = json!([{"name": "list_files", "arguments": {}}, call]).to_string();
    let with_another = format!(
        "<tool_call>{}</tool_call>\n{tagged}",
        json!({"name": "list_files", "arguments": {"path": "."}})
    );
    for (file, answer) in [
        (compact.as_str(), compact.as_str()),
        (&compact, &pretty),
        (&pretty, &compact),
        (&numbered, &pretty),
        (&numbered, &compact),
        (&escaped, &escaped),
        (&escaped, &compact),
        (&json!({ "say": json!({ "say": compact }).to_string() }).to_string(), &compact),
        (&turned, &compact),
        (&quoted, &compact),
        (&compact, &quoted),
        (&compact, &format!("```json\n{compact}\n```")),
        (&compact, &two),
        (&compact, &format!("<tool_call>{compact}</tool_call>")),
        (tagged, tagged),
        (&tagged.replace('\n', ""), tagged),
        (tagged, &tagged.replace('\n', "")),
        (tagged, &with_another),
        ("name: write_file\narguments:\n  path: x\n  content: say \"é\" \\ now\n", &compact),
        ("write_file(path='x', content='say \"é\" \\ now')", &pretty),
    ] {
        assert_eq!(answered_after_reading(file, answer), (false, 2), "{file} {answer}");
    }
    let told = Lab::new();
    let server = Server::turns([text(&compact), text("never")]);
    let prompt = format!("What does {compact} mean?");
    let (url, key) = (server.url(), KEY);
    told.agent(&[
        "run",
        &prompt,
        "--mode",
        "yolo",
        "--model",
        "openai/m",
        "--api-base",
        &url,
        "--api-key",
        key,
    ])
    .exits(0);
    assert!(!told.exists("x"));
}

#[test]
fn l21_a_call_whose_words_alone_were_given_runs() {
    let call = json!({"name": "write_file", "arguments": {"path": "x", "content": "hi"}}).to_string();
    let tagged =
        "<function=write_file><parameter=path>x</parameter><parameter=content>hi</parameter></function>";
    for answer in [call.as_str(), tagged] {
        let file = "write_file says hi to x; {\"path\": \"x\"} is where\n";
        assert_eq!(answered_after_reading(file, answer), (true, 3), "{answer}");
    }
}

#[test]
fn l21_pieces_of_a_cut_answer_are_a_call_only_together() {
    let call = json!({"name": "write_file", "arguments": {"path": "x", "content": "hi", "mode": "append"}})
        .to_string();
    let tagged = format!("<tool_call>{call}</tool_call>");
    let cut = |text: &str| json!({"text": text, "finish": "length"});
    for call in [&call, &tagged] {
        let lab = Lab::new();
        let (done, sent) =
            play("llamacpp/m", &lab, &script(&[cut("The file says: "), text(call), text("never")]), &[]);
        assert_eq!((done.exits(0).stdout.trim(), sent.len()), (format!("The file says: {call}").as_str(), 2));
        assert!(!lab.exists("x"), "{call}");

        let (begin, end) = call.split_at(30);
        let lab = Lab::new();
        let (done, sent) = play("llamacpp/m", &lab, &script(&[cut(begin), text(end), text("done")]), &[]);
        assert_eq!((done.exits(0).stdout.trim(), sent.len()), ("done", 3));
        assert_eq!(lab.read("x"), "hi", "{call}");
    }
}

#[test]
fn l18_calls_of_an_answer_that_was_broken_off_do_not_run_and_the_error_says_why() {
    let call = json!([{"name": "write_file", "arguments": {"path": "x", "content": "x"}}]);
    for (model, finish, exit, stop, kind, told) in [
        ("openai/m", "content_filter", 2, "content_filter", "refusal", "filtered"),
        ("openai/m", "refusal", 2, "content_filter", "refusal", "refused"),
        ("openai/m", "brand_new", 1, "llm_error", "malformed", "`brand_new`"),
        ("anthropic/claude-m", "refusal", 2, "content_filter", "refusal", "refused"),
        ("anthropic/claude-m", "brand_new", 1, "llm_error", "malformed", "`brand_new`"),
        (
            "anthropic/claude-m",
            "model_context_window_exceeded",
            2,
            "context_full",
            "context_overflow",
            "window",
        ),
        ("gemini/m", "SAFETY", 2, "content_filter", "refusal", "filtered the answer: `SAFETY`"),
        ("gemini/m", "LANGUAGE", 2, "content_filter", "refusal", "filtered the answer: `LANGUAGE`"),
        ("gemini/m", "OTHER", 1, "llm_error", "malformed", "unknown finish reason `OTHER`"),
        ("gemini/m", "BRAND_NEW", 1, "llm_error", "malformed", "`BRAND_NEW`"),
        ("openai-responses/m", "content_filter", 2, "content_filter", "refusal", "filtered"),
        ("ollama/m", "brand_new", 1, "llm_error", "malformed", "`brand_new`"),
    ] {
        for said in ["oh", ""] {
            let lab = Lab::new();
            let turn = json!({"text": said, "calls": call, "finish": finish});
            let (done, sent) = play(model, &lab, &script(&[turn, text("never")]), &["--json"]);
            let json = done.exits(exit).json();
            assert_eq!(
                (&json["stop_reason"], &json["error"]["kind"]),
                (&stop.into(), &kind.into()),
                "{model} {finish}"
            );
            let message = json["error"]["message"].as_str().unwrap();
            assert!(message.contains(told) && message.contains("did not run"), "{model} {finish}: {message}");
            assert!(!lab.exists("x") && sent.len() == 1, "{model} {finish}");
            let server = Server::turns([text("it goes on")]);
            lab.resume(&server, &["go on"]).exits(0);
        }
    }
}

#[test]
fn l18_a_whole_call_of_an_answer_that_was_cut_runs() {
    let call = json!([{"name": "write_file", "arguments": {"path": "x", "content": "x"}}]);
    for model in MODELS {
        let lab = Lab::new();
        let turn = json!({"text": "oh", "calls": call, "finish": "length"});
        let (done, _) = play(model, &lab, &script(&[turn, text("done")]), &[]);
        assert_eq!(done.exits(0).stdout, "done\n", "{model}");
        assert!(lab.exists("x"), "{model}");
    }
}

#[test]
fn l18_an_answer_that_its_provider_paused_is_continued() {
    for (model, finish) in [("anthropic/claude-m", "pause_turn"), ("gemini/m", "CONTINUATION")] {
        let turns = [json!({"text": "a", "finish": finish}), text("b")];
        let (done, sent) = play(model, &Lab::new(), &script(&turns), &[]);
        assert_eq!((done.exits(0).stdout.as_str(), sent.len()), ("ab\n", 2), "{model}");
    }
}
