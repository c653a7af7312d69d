//! The connection to a NATS server: who may be asked, with which credentials, and for how long.

use crate::fleet::error::QueueError;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a server is tried before the command fails.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);
/// First wait between two tries; each further one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Longest wait between two tries.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// What identifies this client to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    #[default]
    None,
    /// A user and a password.
    User(String, String),
    /// A token.
    Token(String),
}

/// A server, and how to connect to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsServer {
    /// `nats://HOST:PORT`, or `tls://HOST:PORT`.
    pub url: String,
    /// Who connects.
    pub credentials: Credentials,
    /// File with further certificates of authorities, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Whether a server of another machine is used without TLS.
    pub insecure: bool,
    /// Start of the names of everything on the server.
    pub prefix: String,
    /// Number of servers that store each record.
    pub replicas: usize,
}

impl NatsServer {
    /// Returns the address.
    ///
    /// # Errors
    /// Fails for an address that is none, one with credentials, and for a server of another machine without TLS.
    fn address(&self) -> Result<ServerAddr, String> {
        let wrong = |why: &str| Err(format!("`{}` is no NATS server: {why}", self.url));
        let Ok(address) = ServerAddr::from_str(&self.url) else {
            return wrong("write `nats://HOST:PORT` or `tls://HOST:PORT`");
        };
        if address.has_user_pass() {
            return Err("an address of a NATS server with credentials is refused: set `fleet.nats.user_env` or `fleet.nats.token_env`".to_owned());
        }
        match address.scheme() {
            "tls" => Ok(address),
            "nats" if self.insecure || is_loopback(address.host()) => Ok(address),
            "nats" => wrong(
                "another machine is used with TLS (`tls://`), or without it with `fleet.nats.insecure: true`",
            ),
            _ => wrong("write `nats://HOST:PORT` or `tls://HOST:PORT`"),
        }
    }

    /// Checks the address and the prefix.
    ///
    /// # Errors
    /// Fails for an address that is none, one with credentials, a server of another machine without TLS, and a prefix that cannot be part of names.
    pub fn check(&self) -> Result<(), String> {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
        if !(1..=32).contains(&self.prefix.len()) || !self.prefix.chars().all(is_plain) {
            return Err("fleet.nats.prefix has 1 to 32 letters, digits, `-` and `_`".to_owned());
        }
        self.address().map(drop)
    }

    /// Connects, and tries again for some seconds while the server does not answer. Later the connection is renewed whenever it is lost.
    ///
    /// # Errors
    /// Fails when there is no answer, and when the server refuses the credentials.
    pub async fn connect(&self) -> Result<Client, QueueError> {
        let address = self.address().map_err(QueueError::Storage)?;
        let (began, mut wait) = (Instant::now(), FIRST_WAIT);
        loop {
            let error = match self.options(&address).connect(address.clone()).await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let is_final = !matches!(
                error.kind(),
                ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns
            );
            let why = format!("{}: {error}", self.url);
            if is_final {
                return Err(QueueError::Storage(why));
            }
            if began.elapsed().saturating_add(wait) > MAX_CONNECT_TIME {
                return Err(QueueError::Away(why));
            }
            sleep(jittered(wait)).await;
            wait = wait.saturating_mul(2).min(MAX_WAIT);
        }
    }

    fn options(&self, address: &ServerAddr) -> ConnectOptions {
        let options = ConnectOptions::new()
            .name("agent")
            .require_tls(address.tls_required())
            .connection_timeout(MAX_WAIT)
            .reconnect_delay_callback(|attempts| match attempts {
                0 | 1 => Duration::ZERO,
                more => {
                    let doublings = u32::try_from(more.min(10)).unwrap_or(10);
                    jittered(FIRST_WAIT.saturating_mul(1 << doublings).min(MAX_WAIT))
                }
            });
        // Without TLS, a server could name others, which are not on this machine.
        let options = if address.tls_required() { options } else { options.ignore_discovered_servers() };
        let options = match &self.ca_file {
            Some(file) => options.add_root_certificates(file.clone()),
            None => options,
        };
        match &self.credentials {
            Credentials::None => options,
            Credentials::User(user, password) => options.user_and_password(user.clone(), password.clone()),
            Credentials::Token(token) => options.token(token.clone()),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns between half of `wait` and all of it, so that many clients do not come at the same moment.
fn jittered(wait: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    (wait / 2).saturating_add(wait / 2 * (random % 1_000) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, insecure: bool) -> NatsServer {
        let url = url.to_owned();
        NatsServer {
            url,
            credentials: Credentials::None,
            ca_file: None,
            insecure,
            prefix: "AGENT".to_owned(),
            replicas: 1,
        }
    }

    #[test]
    fn without_tls_only_this_machine_is_a_server() {
        for url in ["nats://127.0.0.1:4222", "nats://localhost", "nats://[::1]:1", "tls://example.org"] {
            assert!(server(url, false).address().is_ok(), "{url}");
        }
        for url in [
            "nats://example.org",
            "nats://10.0.0.1",
            "ws://127.0.0.1",
            "http://127.0.0.1",
            "nats://u:p@127.0.0.1",
            "tls://u:p@h",
        ] {
            assert!(server(url, false).address().is_err(), "{url}");
        }
        assert!(server("nats://example.org", true).address().is_ok());
    }

    #[test]
    fn a_wait_has_at_least_half_of_its_length() {
        for _ in 0..100 {
            let wait = jittered(MAX_WAIT);
            assert!(wait >= MAX_WAIT / 2 && wait <= MAX_WAIT, "{wait:?}");
        }
    }
}
