//! Creates the network that the confined commands of a run share, with the first of them.

use super::launch::{Launcher, PROBE_TIMEOUT, open_dev_null};
use super::launch_protocol::LaunchRequest;
use super::network_namespace::NetworkNamespace;
use super::tier::Tier;
use std::io::{self, Read, Write};
use std::path::Path;

impl Launcher {
    /// Returns the network that all confined commands of this run share, created with the first of them. If the kernel refuses
    /// it, each command has its own network and cannot reach the servers of others.
    ///
    /// # Errors
    /// When it is refused and commands need it to reach the proxy.
    pub(super) fn network(&self) -> io::Result<Option<&NetworkNamespace>> {
        match self.network.get_or_init(|| self.make_network().ok()) {
            None if self.proxy.is_some() => {
                Err(io::Error::other("its network with a way to the allowed hosts cannot be created"))
            }
            network => Ok(network.as_ref()),
        }
    }

    fn make_network(&self) -> io::Result<NetworkNamespace> {
        let (guard, control) =
            self.fork_guard(Path::new("/"), [&open_dev_null()?, &open_dev_null()?], None)?;
        let listens = self.proxy.is_some();
        let request =
            LaunchRequest { makes_network: true, listens, ..LaunchRequest::without_command(Tier::Full) };
        let made = control
            .set_read_timeout(Some(PROBE_TIMEOUT))
            .and_then(|()| NetworkNamespace::send(None, None, &control))
            .and_then(|()| (&control).write_all(&request.encode()?))
            .and_then(|()| NetworkNamespace::receive(&control));
        // The process exits by itself. Killing it would cause a scan of all processes of the machine for its leftovers.
        let ended = made.is_ok() && (&control).read(&mut [0]).is_ok_and(|read| read == 0);
        if !ended {
            guard.kill();
        }
        let mut made = made?;
        let task = match &self.proxy {
            Some(proxy) => Some(proxy.serve(made.take_listener().ok_or(io::ErrorKind::Unsupported)?)?),
            None => None,
        };
        if made.is_empty() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(made.with_task(task)) }
    }
}
