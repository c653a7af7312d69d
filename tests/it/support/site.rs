//! A web server whose answers are given, whole, by path; over TLS where it has a certificate.

use super::run::Lab;
use super::wire_server;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// How a path is answered: every byte of it.
type Pages = dyn Fn(&str) -> Vec<u8> + Send;

/// The server; it remembers the heads of the requests.
pub struct Site {
    pub address: SocketAddr,
    scheme: &'static str,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub fn serving(pages: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        Self::start(None, Box::new(pages))
    }

    /// The same over TLS.
    pub fn secured(tls: rustls::ServerConfig, pages: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        Self::start(Some(Arc::new(tls)), Box::new(pages))
    }

    fn start(tls: Option<Arc<rustls::ServerConfig>>, pages: Box<Pages>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                // A client that goes away amid an answer is none of the server's business.
                let _ = match &tls {
                    None => serve(stream, &pages, &seen),
                    Some(tls) => {
                        let connection = rustls::ServerConnection::new(Arc::clone(tls)).unwrap();
                        serve(rustls::StreamOwned::new(connection, stream), &pages, &seen)
                    }
                };
            }
        });
        Self { address, scheme, heads }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// A workspace whose user allows every host, and this server although it is on this machine.
    pub fn lab(&self) -> Lab {
        let address = self.address;
        Lab::new().config(&format!(
            "web: {{enabled: true, allowed_hosts: ['*'], allowed_private: ['{address}']}}\n"
        ))
    }
}

fn serve(stream: impl Read + Write, pages: &Pages, seen: &Mutex<Vec<String>>) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(head) = wire_server::request(&mut reader)? else { return Ok(()) };
    let answer = pages(head.split(' ').nth(1).unwrap());
    seen.lock().unwrap().push(head);
    reader.get_mut().write_all(&answer)?;
    reader.get_mut().flush()?;
    if answer.ends_with(b"hang") {
        // Nobody says more, so this ends when the other side hangs up.
        reader.read_line(&mut String::new())?;
    }
    Ok(())
}

/// A page of this media type.
pub fn page(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer(&format!("content-type: {kind}\r\n"), body)
}

/// An answer with these header lines, each with its line end.
pub fn answer(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

pub fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

/// What the model would read of `url`.
pub fn fetched(lab: &Lab, url: &str) -> String {
    let arguments = serde_json::json!({"url": url}).to_string();
    let done = lab.agent(&["tools", "call", "web_fetch", &arguments, "--mode", "yolo"]);
    format!("{}{}", done.stdout, done.stderr)
}

/// What the agent of `lab` prints in a mount namespace in which `/etc/hosts` is `hosts`; `None` without such namespaces.
pub fn agent_with_names(lab: &Lab, hosts: &Path, args: &[&str]) -> Option<String> {
    let agent = lab.command(args);
    let script = format!("mount --bind '{}' /etc/hosts && exec \"$@\"", hosts.display());
    let mut inside = Command::new("unshare");
    inside.args(["-rm", "sh", "-c", &script, "sh"]).arg(agent.get_program()).args(agent.get_args());
    inside.env_clear().envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = inside.current_dir(lab.ws()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    if said.contains("unshare") || said.contains("mount:") {
        eprintln!("not tried, no mount namespace here: {said}");
        return None;
    }
    Some(said)
}
