//! The connection to a NATS server: who may be asked, with which credentials, and for how long.

use crate::backoff::{MAX_WAIT, wait_after};
use crate::error::QueueError;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a server is tried before the command fails.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);
/// Least time for one try.
const MIN_CONNECT_TIME: Duration = Duration::from_secs(1);

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
        // What may be a password is not repeated.
        let shown = self.url.rsplit('@').next().unwrap_or_default();
        let wrong = |why: &str| Err(format!("`{shown}` is no NATS server: {why}"));
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
        let (began, mut tries) = (Instant::now(), 0);
        loop {
            let left = MAX_CONNECT_TIME.saturating_sub(began.elapsed()).clamp(MIN_CONNECT_TIME, MAX_WAIT);
            let options = self.options(&address).connection_timeout(left);
            let error = match options.connect(address.clone()).await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let is_final = !matches!(
                error.kind(),
                ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns
            );
            let why = format!("{}: {error}", self.url);
            if matches!(
                error.kind(),
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation
            ) {
                return Err(QueueError::Auth(why));
            }
            if is_final {
                return Err(QueueError::Storage(why));
            }
            let wait = wait_after(tries);
            if began.elapsed().saturating_add(wait) > MAX_CONNECT_TIME {
                return Err(QueueError::Away(why));
            }
            sleep(wait).await;
            tries += 1;
        }
    }

    fn options(&self, address: &ServerAddr) -> ConnectOptions {
        let options = ConnectOptions::new()
            .name("agent")
            .require_tls(address.tls_required())
            .reconnect_delay_callback(|tries| if tries < 2 { Duration::ZERO } else { wait_after(tries) });
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
    fn a_message_about_an_address_has_no_password() {
        for url in ["nats://user:secret@", "http://user:secret@host", "nats://user:secret@host:x"] {
            let error = server(url, false).address().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
