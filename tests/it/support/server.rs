//! A scripted model server on this machine: plays the same YAML as `scripted:FILE`, over real HTTP, faults included.

use super::dialect::{Dialect, take_marks_off};
use agent_llm::framing::Framing;
use agent_llm::quirks::Quirks;
use agent_llm::scripted::{Fault, RawResponse, Script, Turn, render};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest any wait takes before the test fails.
const PATIENCE: Duration = Duration::from_mins(2);
/// What the server says that its model may hold, where that can be asked, in tokens.
pub const WINDOW: u32 = 20_000;
/// The longest head of a request.
const HEAD_CAP: usize = 64 * 1024;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Method and path.
    pub target: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The JSON body without the marks around results, which the server has looked at.
    pub body: Value,
    /// The body byte for byte.
    pub bytes: Vec<u8>,
    /// When its last byte arrived.
    pub arrived: Instant,
}

impl Recorded {
    /// The messages of the conversation, in the format of Chat Completions.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().unwrap()
    }

    /// The texts of the messages of this role.
    pub fn texts(&self, role: &str) -> Vec<String> {
        let messages = self.messages().iter().filter(|message| message["role"] == role);
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }

    /// The names of the tools that the model may call.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// How many answers the conversation holds so far.
    fn answers(&self) -> usize {
        let messages = self.body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        messages.iter().filter(|message| message["role"] == "assistant").count()
    }
}

#[derive(Default)]
struct State {
    requests: Vec<Recorded>,
    queries: Vec<Recorded>,
    disconnects: usize,
    connections: usize,
    stopped: bool,
}

/// What decides which turn a request gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The number of requests before it.
    Requests,
    /// The number of answers in its conversation.
    Answers,
    /// The number of requests to its model before it.
    Models,
}

struct Shared {
    /// The script of each model; that of the empty name is for all others.
    scripts: BTreeMap<String, Script>,
    order: Order,
    state: Mutex<State>,
    changed: Condvar,
}

/// The server; it stops when dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that answers request after request with the turns of a script. `scripted:FILE` does the same, but for requests that
    /// were interrupted: only the program knows of them, and asks for the same turn again.
    pub fn start(script: &str) -> Self {
        Self::serving(&[("", script)], Order::Requests)
    }

    /// Starts a server that answers request after request with these turns.
    pub fn turns(turns: impl Into<Value>) -> Self {
        Self::start(&json!({ "turns": turns.into() }).to_string())
    }

    /// Starts a server that answers request after request with these turns, each of them YAML in braces.
    pub fn yaml(turns: &[&str]) -> Self {
        Self::start(&format!("turns: [{}]", turns.join(", ")))
    }

    /// Starts a server that makes these calls in one answer, and then answers `done`.
    pub fn batch(calls: impl Into<Value>) -> Self {
        Self::turns(json!([{"calls": calls.into()}, {"text": "done"}]))
    }

    /// Starts a server that makes these calls, one in each answer, and then answers `done`.
    pub fn calls(calls: impl IntoIterator<Item = Value>) -> Self {
        let turns = calls.into_iter().map(|call| json!({"calls": [call]}));
        Self::turns(turns.chain([json!({"text": "done"})]).collect::<Vec<_>>())
    }

    /// Starts a server that answers one request, with `done`.
    pub fn done() -> Self {
        Self::turns(json!([{"text": "done"}]))
    }

    /// Starts a server that answers each conversation with the turn that it has come to, whoever gave the answers before.
    pub fn following(script: &str) -> Self {
        Self::serving(&[("", script)], Order::Answers)
    }

    /// Starts a server that plays a script of its own for each model, in whatever order requests to different models arrive.
    pub fn by_model(scripts: &[(&str, &str)]) -> Self {
        Self::serving(scripts, Order::Models)
    }

    fn serving(scripts: &[(&str, &str)], order: Order) -> Self {
        let parse =
            |(model, script): &(&str, &str)| ((*model).to_owned(), Script::parse(script, "script").unwrap());
        let scripts = scripts.iter().map(parse).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { scripts, order, state: Mutex::default(), changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        let accepting = Some(std::thread::spawn(move || serving.accept(&listener)));
        Self { shared, address, accepting }
    }

    /// The API base.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// How many connections were accepted.
    /// What was asked about the server itself, such as its models.
    pub fn queries(&self) -> Vec<Recorded> {
        self.shared.lock().queries.clone()
    }

    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until `n` requests have arrived.
    pub fn wait_for_request(&self, n: usize) {
        self.shared.wait(&format!("{n} requests"), |state| state.requests.len() >= n);
    }

    /// Waits until a client has gone away before its answer was complete.
    pub fn wait_for_disconnect(&self) {
        self.shared.wait("a disconnect", |state| state.disconnects > 0);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        // Wakes the accepting thread, which then sees that it is over and closes the port.
        drop(TcpStream::connect(self.address));
        drop(self.accepting.take().map(JoinHandle::join));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait(&self, what: &str, ready: impl Fn(&State) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !ready(state)).unwrap();
        assert!(!waited.1.timed_out(), "waited {PATIENCE:?} for {what}");
    }

    /// Lets time pass, which is what the script asks for, unless the server stops.
    fn pause(&self, millis: u64) {
        if millis > 0 {
            let time = Duration::from_millis(millis);
            drop(self.changed.wait_timeout_while(self.lock(), time, |state| !state.stopped));
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            let mut state = self.lock();
            if state.stopped {
                return;
            }
            state.connections += 1;
            drop(state);
            let serving = Arc::clone(self);
            std::thread::spawn(move || {
                // The connection's end is the client's business, unless it comes amid an answer.
                let _ = serving.serve(stream);
            });
        }
    }

    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        loop {
            let request = read_request(&mut stream)?;
            if request.target.starts_with("GET ") {
                self.lock().queries.push(request.clone());
                stream.read_exact(&mut vec![0; unread(&request)])?;
                let listed = json!({"data": [{"id": "scripted-model", "max_model_len": WINDOW}],
                    "default_generation_settings": {"n_ctx": WINDOW}});
                respond(&mut stream, 200, &[], &listed.to_string())?;
                continue;
            }
            if request.target.ends_with("/api/show") {
                stream.read_exact(&mut vec![0; unread(&request)])?;
                let about = json!({"general.architecture": "scripted", "scripted.context_length": WINDOW});
                respond(&mut stream, 200, &[], &json!({"model_info": about}).to_string())?;
                continue;
            }
            let mut state = self.lock();
            let number = match self.order {
                Order::Requests => state.requests.len(),
                Order::Answers => request.answers(),
                Order::Models => {
                    let is_same = |before: &&Recorded| before.body["model"] == request.body["model"];
                    state.requests.iter().filter(is_same).count()
                }
            };
            state.requests.push(request.clone());
            drop(state);
            self.changed.notify_all();
            let model = request.body["model"].as_str().unwrap_or_default();
            let script = self.scripts.get(model).or_else(|| self.scripts.get("")).unwrap();
            let turn = script.turn(number);
            if turn.as_ref().is_some_and(|turn| turn.fault == Some(Fault::Reset)) {
                // The last byte is still unread, so closing resets the connection.
                return Ok(());
            }
            stream.read_exact(&mut vec![0; unread(&request)])?;
            let answered = match turn {
                None => respond_error(&mut stream, &script.exhausted_message(number)),
                Some(turn) => self.answer(&mut stream, &turn, number, &request),
            };
            if let Err(error) = answered {
                if error.kind() != ErrorKind::Other {
                    self.lock().disconnects += 1;
                    self.changed.notify_all();
                }
                return Ok(());
            }
        }
    }

    fn answer(&self, stream: &mut TcpStream, turn: &Turn, number: usize, request: &Recorded) -> Result<()> {
        let body = serde_json::from_slice(&request.bytes).unwrap_or_default();
        let Some(dialect) = Dialect::of(&request.target, &body) else {
            return respond(stream, 404, &[], "");
        };
        let asked = dialect.asked();
        let expected = turn.expect.as_ref().map_or(Ok(()), |expect| expect.check(&asked));
        if let Err(why) = dialect.paired().and(dialect.marked()).and(expected) {
            let message = format!("turn {} of the script expects another request: {why}", number + 1);
            return respond_error(stream, &message);
        }
        self.pause(turn.delay_ms);
        if let Some(error) = &turn.error {
            let wait = error.retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string()));
            let headers: Vec<_> = wait.into_iter().collect();
            return respond(stream, render::status(error), &headers, &render::error_body(error).to_string());
        }
        match &turn.fault {
            Some(Fault::Hang) => wait_for_end(stream),
            Some(Fault::Http(raw)) => respond_raw(stream, raw),
            Some(Fault::Raw(bytes)) => {
                stream.write_all(bytes.as_bytes())?;
                Err(closed())
            }
            _ if asked.stream => self.stream(stream, &dialect, turn, number),
            _ => document(stream, &dialect, turn, number),
        }
    }

    fn stream(&self, stream: &mut TcpStream, dialect: &Dialect, turn: &Turn, number: usize) -> Result<()> {
        let framing = dialect.format.codec(Quirks::default()).framing();
        let kind = if framing == Framing::Sse { "text/event-stream" } else { "application/x-ndjson" };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let count = match turn.fault {
            Some(Fault::Cut(count) | Fault::Close(count) | Fault::Stall(count)) => count,
            _ => usize::MAX,
        };
        for event in render::events(dialect.format, turn, number).iter().take(count) {
            let event =
                if framing == Framing::Sse { format!("data: {event}\n\n") } else { format!("{event}\n") };
            stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
            self.pause(turn.chunk_delay_ms);
        }
        match turn.fault {
            Some(Fault::Stall(_)) => wait_for_end(stream),
            Some(Fault::Close(_)) => Err(closed()),
            _ => stream.write_all(b"0\r\n\r\n"),
        }
    }
}

/// An answer that is not streamed; its faults come in the middle of the body.
fn document(stream: &mut TcpStream, dialect: &Dialect, turn: &Turn, number: usize) -> Result<()> {
    let body = render::body(dialect.format, turn, number);
    if turn.fault.is_none() {
        return respond(stream, 200, &[], &body);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body.as_bytes()[..body.len() / 2])?;
    if matches!(turn.fault, Some(Fault::Stall(_))) { wait_for_end(stream) } else { Err(closed()) }
}

/// The server ends the connection itself.
fn closed() -> Error {
    Error::from(ErrorKind::Other)
}

/// Keeps the connection open until the client ends it.
fn wait_for_end(stream: &mut TcpStream) -> Result<()> {
    let mut byte = [0];
    stream.read(&mut byte).and(Err(Error::from(ErrorKind::ConnectionAborted)))
}

fn respond_error(stream: &mut TcpStream, message: &str) -> Result<()> {
    respond(stream, 400, &[], &json!({"error": {"message": message}}).to_string())
}

fn respond_raw(stream: &mut TcpStream, raw: &RawResponse) -> Result<()> {
    let headers: Vec<_> = raw.headers.clone().into_iter().collect();
    respond(stream, if raw.status == 0 { 200 } else { raw.status }, &headers, &raw.body)
}

fn respond(stream: &mut TcpStream, status: u16, headers: &[(String, String)], body: &str) -> Result<()> {
    let mut answer = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(answer, "{name}: {value}\r\n");
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        answer.push_str("content-type: application/json\r\n");
    }
    answer.push_str("\r\n");
    answer.push_str(body);
    stream.write_all(answer.as_bytes())
}

/// How many bytes of the body still stand in the socket.
fn unread(request: &Recorded) -> usize {
    usize::from(!request.bytes.is_empty())
}

/// Reads a request except for the last byte of its body, which is only looked at.
#[expect(clippy::disallowed_methods, reason = "when a request arrives is what tests of delays look at")]
fn read_request(stream: &mut TcpStream) -> Result<Recorded> {
    let head = read_head(stream)?;
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let target = first.rsplit_once(' ').map_or(first, |(target, _)| target).to_owned();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
    let mut bytes = vec![0; length];
    if let Some((last, rest)) = bytes.split_last_mut() {
        stream.read_exact(rest)?;
        stream.peek(std::slice::from_mut(last))?;
    }
    let mut body = serde_json::from_slice(&bytes).unwrap_or_default();
    take_marks_off(&mut body);
    Ok(Recorded { target, headers, body, bytes, arrived: Instant::now() })
}

/// Reads up to the blank line after the headers, and not a byte more.
fn read_head(stream: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    let mut window = [0; 4096];
    while head.len() < HEAD_CAP {
        let seen = stream.peek(&mut window)?;
        if seen == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        let before = head.len();
        head.extend_from_slice(&window[..seen]);
        let from = before.saturating_sub(3);
        let end = head[from..].windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4);
        head.truncate(end.unwrap_or(head.len()));
        stream.read_exact(&mut window[..head.len() - before])?;
        if end.is_some() {
            return Ok(String::from_utf8_lossy(&head).trim_end().to_owned());
        }
    }
    Err(Error::from(ErrorKind::InvalidData))
}
