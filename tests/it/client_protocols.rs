//! What holds for every protocol of client programs: `agent exec`, `agent acp`, `agent serve`, `agent mcp serve` and that of Claude Code.

use crate::stream_faults::{Answer, FAULTS};
use crate::support::mcp_client::McpClient;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use crate::support::wire_server::{WireServer, head};
use crate::truncated_answers::turn;
use agent_llm::wire_format::WireFormat;
use serde_json::{Value, json};

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Exec,
    Acp,
    Serve,
    Mcp,
    Claude,
}

pub const DIALECTS: [Dialect; 5] =
    [Dialect::Exec, Dialect::Acp, Dialect::Serve, Dialect::Mcp, Dialect::Claude];

/// A client of a protocol.
pub struct Client<'a> {
    dialect: Dialect,
    lab: &'a Lab,
    url: &'a str,
    /// Absent where each run is a process.
    process: Option<McpClient>,
}

impl<'a> Client<'a> {
    pub fn start(dialect: Dialect, lab: &'a Lab, url: &'a str, more: &[&str]) -> Self {
        let spawn = |command: &[&str]| McpClient::spawn_at(command, lab, url, more);
        let process = match dialect {
            Dialect::Exec | Dialect::Claude => None,
            Dialect::Acp => {
                let mut client = spawn(&["acp"]);
                client.request("initialize", &json!({"protocolVersion": 1}));
                Some(client)
            }
            Dialect::Serve => Some(spawn(&["serve"])),
            Dialect::Mcp => Some(spawn(&["mcp", "serve"]).greeted(&json!({}))),
        };
        Self { dialect, lab, url, process }
    }

    /// Runs a task: the text of the answer if the client is told of a success, else what it is told.
    pub fn run(&mut self) -> Result<String, String> {
        match self.dialect {
            Dialect::Exec => self.exec(),
            Dialect::Claude => self.claude(),
            Dialect::Acp => self.prompt(),
            Dialect::Serve => self.serve(),
            Dialect::Mcp => {
                let done = self.request("tools/call", &json!({"name": "run", "arguments": {"task": "x"}}));
                let is_success = done["result"].is_object() && done["result"]["isError"] != true;
                verdict(is_success, &done["result"]["content"][0]["text"], &done)
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.process.as_mut().unwrap().request(method, params)
    }

    fn exec(&self) -> Result<String, String> {
        let base = format!("openai_base_url={}", json!(self.url));
        let done = self.lab.agent(&["exec", "--json", "--config", &base, "--model", "openai/mock", "x"]);
        let events: Vec<Value> =
            done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_completed = events.iter().any(|event| event["type"] == "turn.completed");
        assert_eq!(is_completed, done.code == Some(0), "{done:?}");
        let answer = events.iter().rfind(|event| event["item"]["type"] == "agent_message");
        verdict(
            is_completed,
            answer.map_or(&Value::Null, |event| &event["item"]["text"]),
            &json!(done.stdout),
        )
    }

    fn claude(&self) -> Result<String, String> {
        let flags = ["--output-format=stream-json", "--verbose", "--dangerously-skip-permissions"];
        let mut command = self.lab.command(&[&["-p", "x", "--model", "openai/mock"], &flags[..]].concat());
        let done = command.env("AGENT_API_BASE", self.url).env("OPENAI_API_KEY", KEY).output().unwrap();
        let lines = String::from_utf8(done.stdout).unwrap();
        let result: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(result["subtype"] == "success", done.status.code() == Some(0), "{result}");
        verdict(result["subtype"] == "success", &result["result"], &result)
    }

    fn prompt(&mut self) -> Result<String, String> {
        let opened = self.request("session/new", &json!({"cwd": self.lab.ws(), "mcpServers": []}));
        let params =
            json!({"sessionId": opened["result"]["sessionId"], "prompt": [{"type": "text", "text": "x"}]});
        let client = self.process.as_mut().unwrap();
        let id = client.begin("session/prompt", &params);
        let mut text = String::new();
        loop {
            let message = client.receive();
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                text.push_str(update["content"]["text"].as_str().unwrap());
            }
            if message["id"] == id {
                return verdict(message["result"]["stopReason"] == "end_turn", &json!(text), &message);
            }
        }
    }

    fn serve(&mut self) -> Result<String, String> {
        self.request("start", &json!({"task": "x"}));
        self.finished()
    }

    fn finished(&self) -> Result<String, String> {
        loop {
            let message = self.process.as_ref().unwrap().receive();
            if message["method"] == "finished" {
                let result = &message["params"]["result"];
                return verdict(result["status"] == "success", &result["output"], result);
            }
        }
    }
}

fn verdict(is_success: bool, text: &Value, told: &Value) -> Result<String, String> {
    if is_success { Ok(text.as_str().unwrap().to_owned()) } else { Err(told.to_string()) }
}

pub fn with_dialect_key(config: &str) -> Lab {
    let llm = "llm: {retries: 1, timeouts: {silence_seconds: 1}}";
    Lab::new().env("CODEX_API_KEY", KEY).config(&format!("{llm}\n{config}\n"))
}

#[test]
fn lr5_no_fault_of_a_connection_looks_like_a_success_in_any_protocol() {
    let check = |dialect: Dialect| {
        let streamed = matches!(dialect, Dialect::Acp | Dialect::Serve);
        let answer =
            Answer::new(WireFormat::ChatCompletions, &turn("{text: alpha beta gamma, chunk: 6}"), streamed);
        for fault in FAULTS {
            let broken = answer.clone();
            let server = WireServer::start(move |stream, _| broken.broken(stream, fault));
            let (lab, url) = (with_dialect_key(""), server.url());
            let told = Client::start(dialect, &lab, &url, &[]).run();
            assert!(told.is_err(), "{dialect:?} {fault:?}: {told:?}");
            assert_eq!(server.requests().len(), 2, "{dialect:?} {fault:?}");

            let once = answer.clone();
            let server =
                WireServer::start(
                    move |stream, number| {
                        if number == 0 { once.broken(stream, fault) } else { once.whole(stream) }
                    },
                );
            let url = server.url();
            let answered = Client::start(dialect, &lab, &url, &[])
                .run()
                .unwrap_or_else(|told| panic!("{dialect:?} {fault:?}: {told}"));
            assert!(answered.ends_with("alpha beta gamma"), "{dialect:?} {fault:?}: {answered}");
        }
    };
    std::thread::scope(|scope| {
        for dialect in DIALECTS {
            scope.spawn(move || check(dialect));
        }
    });
}

#[test]
fn lr5_refusals_and_answers_without_content_are_no_success_in_any_protocol() {
    let half = "data: {\"id\":\"r\",\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let stream = |body: String| head("200 OK", "content-type: text/event-stream\r\n") + &body;
    let answers = [
        head("429 Too Many Requests", "retry-after: 0\r\ncontent-length: 0\r\n"),
        head("200 OK", "content-type: application/json\r\ncontent-length: 0\r\n"),
        stream(String::new()),
        stream(format!("{half}data: {{no JSON\n\n{end}")),
    ];
    std::thread::scope(|scope| {
        for dialect in DIALECTS {
            let answers = &answers;
            scope.spawn(move || {
                for answer in answers {
                    let (lab, server) = (with_dialect_key(""), WireServer::bytes(answer.clone()));
                    let url = server.url();
                    let told = Client::start(dialect, &lab, &url, &[]).run();
                    assert!(told.is_err(), "{dialect:?} {answer:?}: {told:?}");
                    assert_eq!(server.requests().len(), 2, "{dialect:?} {answer:?}: {told:?}");
                }
            });
        }
    });
}

#[test]
fn o02_an_answer_that_is_cut_filtered_or_limited_is_no_success_in_any_protocol() {
    for turns in [
        json!([{"text": "no", "finish": "content_filter"}]),
        json!([{"text": "ab", "finish": "length", "repeat": 20}]),
        json!([{"text": ""}, {"text": ""}, {"text": ""}]),
        json!([{"calls": [{"name": "list_files", "arguments": {}}], "repeat": 20}]),
    ] {
        for dialect in DIALECTS {
            let model = Server::turns(turns.clone());
            let (lab, url) = (with_dialect_key("agents: {build: {max_steps: 2}}"), model.url());
            let told = Client::start(dialect, &lab, &url, &[]).run();
            assert!(told.is_err(), "{dialect:?} {turns}: {told:?}");
        }
    }
}

/// Calls that cost ten cents each.
fn expensive() -> (Lab, Server) {
    let lab = with_dialect_key("costs: {prices_file: prices.yaml}")
        .file("prices.yaml", "models: {openai/mock: {input: 1, output: 1, output_limit: 10}}");
    let turn = json!({"text": "ok", "usage": {"input": 100_000, "output": 100}, "repeat": 9});
    (lab, Server::turns(json!([turn])))
}

#[test]
fn l12_a_total_budget_bounds_all_runs_of_a_client_together() {
    for dialect in [Dialect::Acp, Dialect::Serve, Dialect::Mcp] {
        let (lab, model) = expensive();
        let url = model.url();
        let mut client = Client::start(dialect, &lab, &url, &["--budget-total", "0.15", "--budget", "0.12"]);
        let told: Vec<String> = (0..4).map(|_| client.run().unwrap_or_else(|told| told)).collect();
        assert!(told[0].ends_with("ok"), "{dialect:?} {told:?}");
        assert!(told[3].contains("--budget-total"), "{dialect:?} {told:?}");
        assert!(model.requests().len() <= 2, "{dialect:?}: {} calls", model.requests().len());
    }
}

#[test]
fn l12_runs_that_work_at_the_same_time_share_a_total_budget() {
    let (lab, _) = expensive();
    let turn = json!({"text": "ok", "usage": {"input": 1_000, "output": 100}});
    let slow = json!({"text": "slow", "delay_ms": 1500, "usage": {"input": 1_000, "output": 100}});
    let model = Server::turns(json!([slow, turn]));
    let url = model.url();
    let mut client = Client::start(Dialect::Serve, &lab, &url, &["--budget-total", "0.15"]);
    client.request("start", &json!({"task": "x"}));
    model.wait_for_request(1);
    client.request("start", &json!({"task": "y"}));
    let mut answers = [client.finished().unwrap(), client.finished().unwrap()];
    answers.sort_unstable();
    assert_eq!(answers, ["ok", "slow"], "the second run waits for what the first one has reserved");
    assert_eq!(model.requests().len(), 2);
}
