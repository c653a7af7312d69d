//! A collector of OpenTelemetry on this machine: stores the requests of OTLP over HTTP, and answers as a test wants.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Export {
    /// The request line and the headers.
    pub head: String,
    pub body: Vec<u8>,
}

/// The collector; it stops when dropped.
pub struct Collector {
    address: SocketAddr,
    exports: Arc<Mutex<Vec<Export>>>,
    stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Collector {
    /// Starts a collector that accepts everything.
    pub fn start() -> Self {
        Self::answering("200 OK", &[])
    }

    /// Starts a collector that answers each request with this status and body.
    pub fn answering(status: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        let answer = [head.as_bytes(), body].concat();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (exports, stopped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (stored, ended) = (Arc::clone(&exports), Arc::clone(&stopped));
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                // A client that goes away has no export.
                drop(serve(stream, &answer, &stored));
            }
        });
        Self { address, exports, stopped, accepting: Some(accepting) }
    }

    /// The address without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub fn exports(&self) -> Vec<Export> {
        self.exports.lock().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over and closes the port.
        drop(TcpStream::connect(self.address));
        drop(self.accepting.take().map(JoinHandle::join));
    }
}

impl Export {
    /// The spans, in the order of their start.
    pub fn spans(&self) -> Vec<Value> {
        let mut spans =
            self.request()["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        spans.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap());
        spans
    }

    /// The decoded body.
    pub fn request(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The value of an attribute of a span or a resource.
#[track_caller]
pub fn attribute(of: &Value, name: &str) -> Value {
    let mut attributes = of["attributes"].as_array().unwrap().iter();
    let found = attributes.find(|pair| pair["key"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {of}"))["value"].clone()
}

fn serve(mut stream: TcpStream, answer: &[u8], exports: &Mutex<Vec<Export>>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    exports.lock().unwrap().push(Export { head, body });
    stream.write_all(answer)
}
