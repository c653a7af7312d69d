//! The only way out of the network of confined commands: a listener in that network, whose connections the agent serves.
//!
//! A socket belongs to the network in which it was created. A launcher process creates the listener in the network of the commands
//! and passes it to the agent, which accepts connections of commands there and dials hosts in its own network.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Port of the listener, on the loopback interface of the commands' network: the usual one of HTTP proxies.
const PORT: u16 = 3128;

/// Variables with the address of the proxy, in both spellings that programs read.
const VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/// Creates the listener in the network of this process.
#[cfg(target_os = "linux")]
pub(super) fn listen() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
}

/// Returns the variables that point programs to the proxy, except for servers of the commands themselves.
pub(super) fn environment() -> impl Iterator<Item = (String, String)> {
    let address = format!("http://{}:{PORT}", Ipv4Addr::LOCALHOST);
    let proxies = VARIABLES.map(|name| (name.to_owned(), address.clone()));
    let local = ["no_proxy", "NO_PROXY"].map(|name| (name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
    // Node.js reads the variables only with this one.
    proxies.into_iter().chain(local).chain([("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned())])
}
