//! A server that writes whatever bytes a test wants: answers that no script and no decent server would give.

use std::io::{BufRead, BufReader, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How an answer is written: the connection after a request was read, and how many requests came before. When it
/// returns the connection is closed.
type Play = dyn Fn(&mut TcpStream, usize) -> Result<()> + Send + Sync;

/// The server; it stops when dropped.
pub struct WireServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl WireServer {
    /// Starts a server whose every answer is written by `play`.
    pub fn start(play: impl Fn(&mut TcpStream, usize) -> Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stopped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (heard, ended, play) =
            (Arc::clone(&requests), Arc::clone(&stopped), Arc::<Play>::from(Box::new(play) as Box<Play>));
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (heard, play) = (Arc::clone(&heard), Arc::clone(&play));
                // A client that goes away is what most of these tests are about.
                std::thread::spawn(move || serve(stream, &heard, play.as_ref()).is_ok());
            }
        });
        Self { address, requests, stopped, accepting: Some(accepting) }
    }

    /// A server that answers each request with these bytes and closes.
    pub fn bytes(answer: impl Into<Vec<u8>>) -> Self {
        Self::answers(vec![answer.into()])
    }

    /// A server that answers request after request with one of these and closes; the last answer stays.
    pub fn answers(answers: Vec<Vec<u8>>) -> Self {
        Self::start(move |stream, number| stream.write_all(&answers[number.min(answers.len() - 1)]))
    }

    /// Host and port.
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// The API base.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for WireServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over and closes the port.
        drop(TcpStream::connect(self.address));
        drop(self.accepting.take().map(JoinHandle::join));
    }
}

fn serve(mut stream: TcpStream, heard: &Mutex<Vec<String>>, play: &Play) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(head) = request(&mut reader)? else { return Ok(()) };
    let number = {
        let mut heard = heard.lock().unwrap();
        heard.push(head);
        heard.len() - 1
    };
    play(&mut stream, number)
}

/// Lets `time` pass, where it is the subject of a test.
///
/// # Errors
/// When the client goes away meanwhile.
pub fn pace(stream: &mut TcpStream, time: Duration) -> Result<()> {
    stream.set_read_timeout(Some(time))?;
    let waited = stream.read(&mut [0]);
    stream.set_read_timeout(None)?;
    match waited {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ErrorKind::BrokenPipe.into()),
    }
}

/// Waits until the client goes away.
pub fn hold(stream: &mut TcpStream) -> Result<()> {
    stream.read(&mut [0]).map(drop)
}

/// Writes `piece` again and again until the client goes away, or a gigabyte is written.
pub fn flood(stream: &mut TcpStream, piece: &[u8]) -> Result<()> {
    let block = piece.repeat((64 * 1024 / piece.len()).max(1));
    for _ in 0..1_000_000_000 / block.len() {
        stream.write_all(&block)?;
    }
    Ok(())
}

/// The head of an answer with these further header lines, each with its line end.
pub fn head(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}\r\n")
}

/// `body` as a stream of events whose end is the end of the connection.
pub fn events(body: &str) -> String {
    head("200 OK", "content-type: text/event-stream\r\nconnection: close\r\n") + body
}

/// How many bytes of the body stand in the first part of a [`bomb`].
pub const BOMB_START: usize = 12;

/// An answer that is compressed (RFC 1952) with fixed Huffman codes (RFC 1951 section 3.2.6): it says `x` and then
/// repeats it 258 times with every thirteen bits. Its beginning, and the bytes that go on with it for ever.
pub fn bomb(content_type: &str) -> (Vec<u8>, Vec<u8>) {
    let (block, x, repeat) = ("010", "10101000", "1100010100000");
    let bits: Vec<u8> = format!("{block}{x}{}", repeat.repeat(9)).bytes().map(|bit| bit - b'0').collect();
    let bytes: Vec<u8> =
        bits.chunks_exact(8).map(|byte| byte.iter().rev().fold(0, |sum, bit| sum << 1 | bit)).collect();
    let head = head("200 OK", &format!("content-type: {content_type}\r\ncontent-encoding: gzip\r\n"));
    let start = [head.as_bytes(), b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03", &bytes[..2]].concat();
    (start, bytes[2..15].to_vec())
}

/// Reads a request: its head, or nothing when nobody asks.
pub fn request(reader: &mut impl BufRead) -> Result<Option<String>> {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        let line = head[start..].to_lowercase();
        length = line.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
    }
    reader.read_exact(&mut vec![0; length])?;
    Ok(Some(head))
}
