//! The proxy through which confined commands reach the hosts that the user allows (`sandbox.allowed_hosts`).
//!
//! It accepts connections on a listener in the network of the commands, which has no other way out. It understands `CONNECT`, and
//! plain HTTP requests. A host is resolved once; every address is checked like those of `web_fetch`, and no other is dialled.

pub mod head;
mod relay;
#[cfg(test)]
mod tests;

use super::Fetcher;
use super::allowed_host::AllowedHost;
use agent_text::lines::{QUOTE_CHARS, one_line};
use head::{HeadError, ProxyRequest};
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Maximum number of connections at the same time; further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// Maximum bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum time until the head of a request is complete, and until the host is connected.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time without a byte in either direction, and of a whole connection.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
const TOTAL_TIMEOUT: Duration = Duration::from_hours(1);
/// Time before the next attempt when no connection can be accepted, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of refusals that are remembered until they are reported.
const MAX_REFUSALS: usize = 20;

/// Status of the answer to a request for a host that is not allowed.
const FORBIDDEN: &str = "403 Forbidden";

/// The proxy of a run.
#[derive(Debug, Clone)]
pub struct CommandProxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    hosts: Vec<AllowedHost>,
    /// Checks addresses.
    fetcher: Fetcher,
    /// Connections that may still be accepted.
    free: Arc<Semaphore>,
    /// Why requests were refused while no call was running, as far as it was not reported yet.
    refusals: RefusalList,
    /// The lists of running calls.
    of_calls: Mutex<Vec<Weak<RefusalList>>>,
}

/// Why requests were refused, each in one line.
#[derive(Debug, Default)]
pub struct RefusalList(Mutex<Vec<String>>);

/// Task that serves a listener. Dropping it ends the task and its connections.
#[derive(Debug)]
pub struct ProxyTask(AbortHandle);

/// An answer of the proxy itself.
struct Refusal {
    status: &'static str,
    reason: String,
}

impl CommandProxy {
    /// Creates the proxy for `hosts`; `fetcher` checks their addresses.
    pub fn new(hosts: Vec<AllowedHost>, fetcher: Fetcher) -> Self {
        let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (refusals, of_calls) = (RefusalList::default(), Mutex::default());
        Self(Arc::new(Shared { hosts, fetcher, free, refusals, of_calls }))
    }

    /// Serves the connections to `listener` until the result is dropped.
    ///
    /// # Errors
    /// When the listener cannot be used.
    pub fn serve(&self, listener: StdListener) -> io::Result<ProxyTask> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(ProxyTask(tokio::spawn(accept(listener, Arc::clone(&self.0))).abort_handle()))
    }

    /// Returns why requests were refused while no call was running, since they were taken last.
    pub fn take_refusals(&self) -> Vec<String> {
        self.0.refusals.take()
    }

    /// Returns a list for a call that starts now: until it is dropped, each refusal is added to it. Commands may share a network, so
    /// that calls which run at the same time have the refusals of all of them.
    pub fn refusals_of_call(&self) -> Arc<RefusalList> {
        let list = Arc::default();
        locked(&self.0.of_calls).push(Arc::downgrade(&list));
        list
    }
}

impl RefusalList {
    /// Returns the refusals and empties the list.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.0))
    }

    fn add(&self, reason: &str) {
        let mut reasons = locked(&self.0);
        if reasons.len() < MAX_REFUSALS && !reasons.iter().any(|other| other == reason) {
            reasons.push(reason.to_owned());
        }
    }
}

impl Drop for ProxyTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts connections for ever. Dropping the future closes them.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok(permit) = Arc::clone(&shared.free).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((command, _)) => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let _broken_or_over = timeout(TOTAL_TIMEOUT, shared.serve(command)).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Shared {
    /// Serves one connection of a command.
    async fn serve(&self, mut command: TcpStream) -> io::Result<()> {
        let (request, rest) = match self.read_and_connect(&mut command).await {
            Ok((request, rest, host)) => (Ok((request, host)), rest),
            Err(refusal) => (Err(refusal), Vec::new()),
        };
        match request {
            Ok((request, mut host)) => {
                match request.head {
                    Some(head) => host.write_all(head.as_bytes()).await?,
                    None => command.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
                }
                host.write_all(&rest).await?;
                relay::relay(&mut command, &mut host, IDLE_TIMEOUT).await
            }
            Err(Refusal { status, reason }) => {
                let body = format!("agent: {reason}\n");
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                command.write_all(head.as_bytes()).await?;
                command.write_all(body.as_bytes()).await?;
                command.shutdown().await
            }
        }
    }

    /// Reads the head of a request and connects to its host. Returns the bytes after the head too.
    async fn read_and_connect(
        &self,
        command: &mut TcpStream,
    ) -> Result<(ProxyRequest, Vec<u8>, TcpStream), Refusal> {
        let read = timeout(HEAD_TIMEOUT, self.read_head(command)).await;
        let (request, rest) = read.unwrap_or_else(|_| {
            Err(refusal("408 Request Timeout", "the request was not complete in time"))
        })?;
        let host = timeout(CONNECT_TIMEOUT, self.connect(&request)).await;
        let unreachable =
            || refusal("504 Gateway Timeout", &format!("{} did not answer in time", request.host));
        let host = host.unwrap_or_else(|_| Err(unreachable()))?;
        Ok((request, rest, host))
    }

    async fn read_head(&self, command: &mut TcpStream) -> Result<(ProxyRequest, Vec<u8>), Refusal> {
        let mut bytes = Vec::new();
        loop {
            match head::parse(&bytes) {
                Ok(Some(request)) => {
                    let rest = bytes.split_off(request.length);
                    return Ok((request, rest));
                }
                Ok(None) if bytes.len() >= MAX_HEAD_BYTES => {
                    let reason = "the head of the request is too long".to_owned();
                    return Err(self.refuse("431 Request Header Fields Too Large", reason));
                }
                Ok(None) => {}
                Err(HeadError::Malformed(reason)) => {
                    return Err(self.refuse("400 Bad Request", reason.to_owned()));
                }
                Err(HeadError::Host(host)) => {
                    let host = one_line(&host, QUOTE_CHARS);
                    let reason = format!("{host} is not the name of a host in ASCII with a port");
                    return Err(self.refuse(FORBIDDEN, reason));
                }
            }
            let room = MAX_HEAD_BYTES.saturating_sub(bytes.len()) as u64;
            match command.take(room).read_buf(&mut bytes).await {
                Ok(read) if read > 0 => {}
                _ => return Err(refusal("400 Bad Request", "the request is incomplete")),
            }
        }
    }

    async fn connect(&self, request: &ProxyRequest) -> Result<TcpStream, Refusal> {
        let ProxyRequest { host, port, .. } = request;
        if !self.hosts.iter().any(|allowed| allowed.allows(host, *port)) {
            let reason = format!("{host}:{port} is not one of sandbox.allowed_hosts");
            return Err(self.refuse(FORBIDDEN, reason));
        }
        let addresses = self
            .fetcher
            .resolve(host, *port)
            .await
            .map_err(|error| self.refuse(FORBIDDEN, format!("{host}:{port}: {error}")))?;
        TcpStream::connect(addresses.as_slice())
            .await
            .map_err(|error| refusal("502 Bad Gateway", &format!("{host}:{port} cannot be reached: {error}")))
    }

    /// Refuses a request, and remembers the reason until it is reported.
    fn refuse(&self, status: &'static str, reason: String) -> Refusal {
        let mut of_calls = locked(&self.of_calls);
        of_calls.retain(|list| list.strong_count() > 0);
        if of_calls.is_empty() {
            self.refusals.add(&reason);
        }
        of_calls.iter().filter_map(Weak::upgrade).for_each(|list| list.add(&reason));
        Refusal { status, reason }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal(status: &'static str, reason: &str) -> Refusal {
    Refusal { status, reason: reason.to_owned() }
}
