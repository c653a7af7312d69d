//! A scripted Hub on this machine: keeps agents, posts and notifications, records each request, and has faults.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The key that the Hub wants.
pub const HUB_KEY: &str = "hub-key-0123456789abcdef";
/// The longest wait of a test.
const PATIENCE: Duration = Duration::from_mins(1);

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and the connection closed without an answer.
    AnswerLost,
    /// It is not done, and answered with this status.
    Status(u16),
    /// It is answered with text that is not JSON.
    BadJson,
    /// It is answered with this many bytes.
    Bytes(usize),
    /// It is answered with a redirect to this port.
    Redirect(u16),
    /// It is done, and the connection stays open without an answer.
    Held,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct HubCall {
    /// Method and path with query, such as `GET /api/v1/agents?x=1`.
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

#[derive(Default)]
struct State {
    calls: Vec<HubCall>,
    /// What the requests begin with, the fault, how many of them come before, and how many have it.
    faults: Vec<(String, Fault, usize, usize)>,
    agents: Vec<Value>,
    posts: Vec<Value>,
    notifications: Vec<Value>,
    keys: BTreeMap<String, Value>,
    budget: BTreeMap<String, Value>,
    ignores_keys: bool,
    next: usize,
}

/// The Hub; it stops when the process does.
pub struct Hub {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Hub {
    /// Starts an empty Hub, which cannot hold a poll.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let shared = Arc::clone(&shared);
                // A client that goes away needs no answer.
                std::thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        let hub = Self { address, state };
        hub.fault("GET /api/v1/notifications/poll", Fault::Status(404), usize::MAX);
        hub
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }

    /// The next requests that begin with `target` have this fault.
    pub fn fault(&self, target: &str, fault: Fault, times: usize) {
        self.fault_after(0, target, fault, times);
    }

    /// The same, after `skipped` of these requests.
    pub fn fault_after(&self, skipped: usize, target: &str, fault: Fault, times: usize) {
        self.state().faults.push((target.to_owned(), fault, skipped, times));
    }

    /// Requests that begin with `target` have no fault any more.
    pub fn heal(&self, target: &str) {
        self.state().faults.retain(|(known, ..)| known != target);
    }

    /// A post with the same key is another one.
    pub fn ignore_keys(&self) {
        self.state().ignores_keys = true;
    }

    pub fn agent(&self, id: &str, last_activated_at: Option<&str>) {
        let agent = json!({"id": id, "name": id, "last_activated_at": last_activated_at});
        self.state().agents.push(agent);
    }

    pub fn budget(&self, agent: &str, budget: Value) {
        self.state().budget.insert(agent.to_owned(), budget);
    }

    /// Adds a post, and returns its id.
    pub fn post(&self, author: &str, content: &str) -> String {
        let post = json!({"agent_id": author, "content": content, "title": "A title"});
        create_post(&mut self.state(), &post)["id"].as_str().unwrap().to_owned()
    }

    /// Adds a comment that no queue of a test has posted.
    pub fn comment(&self, author: &str, post: &str, content: &str) {
        let comment = json!({"agent_id": author, "content": content});
        write(&mut self.state(), &["posts", post, "comments"], &comment).unwrap();
    }

    /// Notifies an agent of a text in the thread of a post, and returns the id of the notification.
    pub fn notify(&self, agent: &str, kind: &str, post: &str, content: &str) -> String {
        let id = format!("n{}", self.state().next + 1);
        self.notify_as(&id, agent, kind, post, content);
        id
    }

    /// The same, with this id.
    pub fn notify_as(&self, id: &str, agent: &str, kind: &str, post: &str, content: &str) {
        let mut state = self.state();
        state.next += 1;
        let time = format!("2026-01-01T00:{:02}:00Z", state.next);
        state.notifications.push(json!({
            "id": id, "to": agent, "type": kind, "post_id": post, "content": content, "read": false,
            "from_agent": {"id": "ann", "name": "Ann"}, "created_at": time,
        }));
    }

    /// The requests whose target begins with `target`.
    pub fn calls(&self, target: &str) -> Vec<HubCall> {
        self.state().calls.iter().filter(|call| call.target.starts_with(target)).cloned().collect()
    }

    /// The comments on a post: authors and texts.
    pub fn comments(&self, post: &str) -> Vec<(String, String)> {
        let state = self.state();
        let post = state.posts.iter().find(|known| known["id"] == post).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let comments = post["comments"].as_array().unwrap();
        comments.iter().map(|one| (text(&one["author"]["id"]), text(&one["content"]))).collect()
    }

    /// All posts.
    pub fn posts(&self) -> Vec<Value> {
        self.state().posts.clone()
    }

    /// Whether a notification was read.
    pub fn was_read(&self, id: &str) -> bool {
        self.state().notifications.iter().find(|one| one["id"] == id).unwrap()["read"] == true
    }

    /// How many notifications were not read.
    pub fn unread(&self) -> usize {
        self.state().notifications.iter().filter(|one| one["read"] == false).count()
    }

    /// Waits for up to `time` until each notification was read; returns whether they were.
    pub fn waits_until_all_read(&self, time: Duration) -> bool {
        let (state, changed) = &*self.state;
        let is_unread = |state: &mut State| state.notifications.iter().any(|one| one["read"] == false);
        !changed.wait_timeout_while(state.lock().unwrap(), time, is_unread).unwrap().1.timed_out()
    }

    /// Waits until there are `count` requests whose target begins with `target`.
    pub fn wait_for(&self, target: &str, count: usize) {
        let (state, changed) = &*self.state;
        let arrived = |state: &State| {
            state.calls.iter().filter(|call| call.target.starts_with(target)).count() >= count
        };
        let waited = changed.wait_timeout_while(state.lock().unwrap(), PATIENCE, |state| !arrived(state));
        assert!(!waited.unwrap().1.timed_out(), "no {count} requests to {target}");
    }
}

fn serve(stream: &TcpStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let target = line.rsplit_once(' ').map_or(line.as_str(), |(target, _)| target).to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let call = HubCall { target, headers, body };
        if !answer(stream, shared, &call)? {
            return Ok(());
        }
    }
}

/// Answers a request; returns whether the connection goes on.
fn answer(
    mut stream: &TcpStream,
    (state, changed): &(Mutex<State>, Condvar),
    call: &HubCall,
) -> std::io::Result<bool> {
    let mut state = state.lock().unwrap();
    state.calls.push(call.clone());
    let mut faults = state.faults.iter_mut();
    let fault = faults.find(|(target, _, _, times)| call.target.starts_with(target.as_str()) && *times > 0);
    let fault = fault.and_then(|(_, fault, skipped, times)| {
        if *skipped > 0 {
            *skipped -= 1;
            return None;
        }
        *times -= 1;
        Some(*fault)
    });
    let is_known = call.headers.get("authorization") == Some(&format!("Bearer {HUB_KEY}"));
    let (status, body) = match fault {
        Some(Fault::Status(status)) => (status, json!({"error": "scripted"}).to_string()),
        Some(Fault::BadJson) => (200, "<html>".to_owned()),
        Some(Fault::Bytes(count)) => (200, "x".repeat(count)),
        Some(Fault::Redirect(_)) => (307, String::new()),
        _ if !is_known => (401, json!({"error": "no key"}).to_string()),
        _ => match handle(&mut state, call) {
            Some(done) => (200, done.to_string()),
            None => (404, json!({"error": "not found"}).to_string()),
        },
    };
    changed.notify_all();
    drop(state);
    if fault == Some(Fault::AnswerLost) {
        return Ok(false);
    }
    if fault == Some(Fault::Held) {
        // Until the client goes away.
        return stream.read(&mut [0]).map(|_| false);
    }
    let more = match fault {
        Some(Fault::Redirect(port)) => format!("location: http://127.0.0.1:{port}/\r\n"),
        _ => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    Ok(true)
}

fn handle(state: &mut State, call: &HubCall) -> Option<Value> {
    let (method, address) = call.target.split_once(' ')?;
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let query: BTreeMap<String, String> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            (name.to_owned(), percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
        })
        .collect();
    let parts: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
    let key = call.headers.get("idempotency-key").filter(|_| !state.ignores_keys).cloned();
    let is_post = matches!((method, parts.as_slice()), ("POST", ["posts"] | ["posts", _, "comments"]));
    if let Some(known) = key.as_ref().filter(|_| is_post).and_then(|key| state.keys.get(key)) {
        return Some(known.clone());
    }
    let done = match method {
        "GET" => read(state, &parts, &query)?,
        _ => write(state, &parts, &call.body)?,
    };
    if let Some(key) = key.filter(|_| is_post) {
        state.keys.insert(key, done.clone());
    }
    Some(done)
}

fn read(state: &State, parts: &[&str], query: &BTreeMap<String, String>) -> Option<Value> {
    Some(match parts {
        ["notifications"] => {
            let agent = query.get("agent_id")?;
            let mine = |one: &&Value| one["to"] == agent.as_str() && one["read"] == false;
            // The newest first, which is another order than that in which they are answered.
            let found: Vec<&Value> = state.notifications.iter().rev().filter(mine).collect();
            json!({"notifications": found})
        }
        ["notifications", "poll"] => {
            let most = query.get("batch_size")?.parse().ok()?;
            json!({"agents": with_notifications(state).into_iter().take(most).collect::<Vec<_>>()})
        }
        ["posts", id] => state.posts.iter().find(|post| post["id"] == *id)?.clone(),
        ["search"] => {
            let author = query.get("author");
            let text = query.get("q")?;
            let matches = |post: &&Value| {
                let is_authors = author.is_none_or(|author| post["author"]["id"] == author.as_str());
                is_authors && format!("{} {}", post["title"], post["content"]).contains(text.as_str())
            };
            json!({"results": state.posts.iter().filter(matches).collect::<Vec<_>>()})
        }
        ["system", "budget-health"] => {
            let budget = state.budget.get(query.get("agent_id")?);
            budget.cloned().unwrap_or_else(|| Value::Object(Map::new()))
        }
        ["agents"] if query.contains_key("has_notifications") => {
            json!({"agents": with_notifications(state)})
        }
        ["agents"] => json!({"agents": state.agents}),
        ["feed", "discover"] => json!({"posts": state.posts}),
        _ => return None,
    })
}

fn write(state: &mut State, parts: &[&str], body: &Value) -> Option<Value> {
    Some(match parts {
        ["notifications", "read"] => {
            let ids: BTreeSet<&str> =
                body["notification_ids"].as_array()?.iter().filter_map(Value::as_str).collect();
            for one in &mut state.notifications {
                if ids.contains(one["id"].as_str().unwrap()) {
                    one["read"] = true.into();
                }
            }
            json!({})
        }
        ["posts"] => create_post(state, body),
        ["posts", id, "comments"] => {
            state.next += 1;
            let comment = json!({
                "id": format!("c{}", state.next), "author": {"id": body["agent_id"]},
                "content": body["content"], "created_at": "2026-01-01T00:00:00Z",
            });
            let post = state.posts.iter_mut().find(|post| post["id"] == *id)?;
            post["comments"].as_array_mut().unwrap().push(comment.clone());
            comment
        }
        ["system", "consumption"] | ["agents", _, "activated"] => json!({}),
        _ => return None,
    })
}

fn with_notifications(state: &State) -> Vec<Value> {
    let count = |id: &Value| {
        state.notifications.iter().filter(|one| one["to"] == *id && one["read"] == false).count()
    };
    let counted = state.agents.iter().map(
        |agent| json!({"id": agent["id"], "name": agent["name"], "notification_count": count(&agent["id"])}),
    );
    counted.filter(|agent| agent["notification_count"] != 0).collect()
}

fn create_post(state: &mut State, body: &Value) -> Value {
    state.next += 1;
    let post = json!({
        "id": format!("p{}", state.next), "author": {"id": body["agent_id"]}, "title": body["title"],
        "content": body["content"], "community": body["community"], "comments": [],
        "created_at": "2026-01-01T00:00:00Z",
    });
    state.posts.push(post.clone());
    post
}
