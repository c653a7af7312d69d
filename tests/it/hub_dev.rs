//! `agent hub dev`: a Hub on this machine, on which agents answer each other.

use crate::support::hub::HUB_KEY;
use crate::support::run::{Lab, Running};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A running Hub with the agents `amy` and `bob`.
struct Dev {
    lab: Lab,
    running: Running,
    address: String,
}

impl Dev {
    fn start() -> Self {
        let lab = Lab::new().env("HUB_API_KEY", HUB_KEY);
        let running = lab.start(&["hub", "dev", "--port", "0", "--agent", "amy", "--agent", "bob"]);
        let text = running.wait_for_stdout(60);
        let address = text.split("http://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        Self { lab, running, address }
    }

    /// Sends a request with these lines in its head, and returns the status and the body.
    fn send(&self, line: &str, head: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn ask(&self, line: &str, body: &Value, more: &str) -> Value {
        let head = format!("host: {}\r\nauthorization: Bearer {HUB_KEY}\r\n{more}", self.address);
        let (head, answer) = self.send(line, &head, &body.to_string());
        assert!(head.starts_with("HTTP/1.1 200"), "{line}: {head} {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn get(&self, path: &str) -> Value {
        self.ask(&format!("GET {path}"), &Value::Null, "")
    }
}

#[test]
fn two_agents_with_scripted_models_answer_each_other() {
    let dev = Dev::start();
    let agents = dev.lab.outside().join("agents");
    for agent in ["amy", "bob"] {
        fs::create_dir_all(agents.join(agent)).unwrap();
        let limits = "{max_responses_per_thread: 2, min_interval_seconds: 0}";
        let config = format!(
            "capabilities: {{grants: ['hub:write']}}\nbehavior: {{limits: {limits}}}\nbrain: {{model: 'scripted:{}'}}\n",
            agents.join(agent).join("model.yaml").display()
        );
        fs::write(agents.join(agent).join("config.yaml"), config).unwrap();
        fs::write(agents.join(agent).join("system-prompt.md"), format!("You are {agent}.")).unwrap();
        fs::write(agents.join(agent).join("model.yaml"), format!("turns: [{{text: This is {agent}.}}]"))
            .unwrap();
    }
    let config = format!("hub: {{url: 'http://{}', agents: '{}'}}\n", dev.address, agents.display());
    fs::write(dev.lab.home().join("config.yaml"), config).unwrap();
    let post = dev.ask(
        "POST /api/v1/posts",
        &json!({"agent_id": "amy", "title": "Hello", "content": "@bob, are you there?"}),
        "",
    );
    dev.lab.agent(&["hub", "serve", "--once"]).exits(0);
    for _ in 0..6 {
        dev.lab.agent(&["worker", "--hub", "--drain"]).exits(0);
        dev.lab.agent(&["hub", "serve", "--once"]).exits(0);
    }
    let thread = dev.get(&format!("/api/v1/posts/{}", post["id"].as_str().unwrap()));
    let authors: Vec<&str> = thread["comments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["author"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(authors, ["bob", "amy", "bob", "amy"], "until the limit of the thread");
    let (head, page) = dev.send("GET /", &format!("host: {}\r\n", dev.address), "");
    assert!(page.contains("This is bob.") && page.contains("This is amy."), "{page}");
    assert!(head.contains("default-src 'none'"), "{head}");
    let unread = dev.get("/api/v1/agents?has_notifications=true");
    assert_eq!(unread["agents"], json!([]));
}

#[test]
fn the_interface_has_the_endpoints_of_a_hub() {
    let dev = Dev::start();
    let limits = json!({"id": "cat", "name": "Cat", "daily_limit": 0.5});
    dev.ask("POST /api/v1/agents/register", &limits, "");
    let new = json!({"agent_id": "amy", "content": "Who knows @bob? A <script>alert(1)</script>", "community": "m/rust"});
    let first = dev.ask("POST /api/v1/posts", &new, "idempotency-key: k1\r\n");
    assert_eq!(dev.ask("POST /api/v1/posts", &new, "idempotency-key: k1\r\n")["id"], first["id"]);
    let unread = dev.get("/api/v1/notifications?agent_id=bob&unread=true");
    assert_eq!(unread["notifications"][0]["type"], "mention");
    assert_eq!(dev.get("/api/v1/notifications/poll?timeout=30")["agents"][0]["id"], "bob");
    let ids = json!({"notification_ids": [unread["notifications"][0]["id"]]});
    dev.ask("POST /api/v1/notifications/read", &ids, "");
    assert_eq!(dev.get("/api/v1/notifications/poll?timeout=0")["agents"], json!([]));
    assert_eq!(dev.get("/api/v1/agents?stale=true&min_staleness=900")["agents"].as_array().unwrap().len(), 3);
    dev.ask("POST /api/v1/agents/bob/activated", &json!({}), "");
    assert_eq!(dev.get("/api/v1/agents?stale=true&min_staleness=900")["agents"].as_array().unwrap().len(), 2);
    let used = json!({"agent_id": "cat", "tokens_input": 5, "tokens_output": 5, "cost_usd": 0.6});
    assert_eq!(dev.get("/api/v1/system/budget-health?agent_id=cat")["healthy"], true);
    dev.ask("POST /api/v1/system/consumption", &used, "");
    assert_eq!(dev.get("/api/v1/system/budget-health?agent_id=cat")["healthy"], false);
    for (path, key) in [
        ("/api/v1/search?q=knows&author=amy", "results"),
        ("/api/v1/feed/discover?agent_id=bob&communities=m%2Frust", "posts"),
        ("/api/v1/feed/discover?agent_id=bob&keywords=who", "posts"),
        ("/api/v1/feed", "posts"),
        ("/api/v1/posts", "posts"),
    ] {
        assert_eq!(dev.get(path)[key].as_array().unwrap().len(), 1, "{path}");
    }
    for path in ["/api/v1/feed/discover?agent_id=amy", "/api/v1/feed/discover?agent_id=bob&keywords=other"] {
        assert_eq!(dev.get(path)["posts"], json!([]), "{path}");
    }
    assert_eq!(dev.get("/api/v1/agents/me?agent_id=bob")["name"], "bob");
    let answer = dev.ask(
        &format!("POST /api/v1/posts/{}/comments", first["id"].as_str().unwrap()),
        &json!({"agent_id": "cat", "content": "me"}),
        "",
    );
    let post = dev.get(&format!("/api/v1/posts/{}", first["id"].as_str().unwrap()));
    assert_eq!((&post["parent_id"], &post["updated_at"]), (&Value::Null, &first["created_at"]));
    assert_eq!(post["comments"][0]["parent_id"], first["id"]);
    assert_eq!(post["comments"][0]["created_at"], answer["created_at"]);
    for number in 0..12 {
        let content = format!("number {number}");
        dev.ask(
            "POST /api/v1/posts",
            &json!({"agent_id": "amy", "content": content, "community": "m/new"}),
            "",
        );
    }
    let found = dev.get("/api/v1/feed/discover?agent_id=bob&communities=m%2Frust&limit=10");
    assert_eq!(found["posts"].as_array().unwrap().len(), 1, "the newest ten are others");
    let (_, page) = dev.send("GET /", &format!("host: {}\r\n", dev.address), "");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
}

#[test]
fn only_requests_with_the_key_that_name_this_machine_are_answered() {
    let dev = Dev::start();
    let with_key = format!("authorization: Bearer {HUB_KEY}\r\n");
    let of = |line: &str, head: &str| dev.send(line, head, "").0;
    let own = format!("host: {}\r\n", dev.address);
    assert!(of("GET /api/v1/agents", &own).starts_with("HTTP/1.1 401"));
    assert!(
        of("GET /api/v1/agents", &format!("host: evil.example\r\n{with_key}")).starts_with("HTTP/1.1 403")
    );
    assert!(of("GET /", "host: evil.example\r\n").starts_with("HTTP/1.1 403"));
    assert!(of("GET /api/v1/nothing", &format!("{own}{with_key}")).starts_with("HTTP/1.1 404"));
    assert!(of("DELETE /api/v1/posts/1", &format!("{own}{with_key}")).starts_with("HTTP/1.1 405"));
    dev.running.signal(rustix::process::Signal::TERM);
    dev.running.finish().exits(0);
}
