//! Network namespace that the confined commands of one run share, so that one command reaches a server that another runs.
//! A launcher process creates the namespaces once, sends their descriptors to the agent and exits. The agent sends them to the
//! launcher of each command in the first message of its control socket. Without root the network belongs to a user namespace,
//! which is joined first because a process may change its network only inside it.

use super::fd_passing;
use agent_fetch::command_proxy::ProxyTask;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Byte that carries the descriptors. A socket transfers none without a byte.
const CARRIER: [u8; 1] = [0];

/// Namespaces of a run's commands in the order of joining: user (unless root), network; and the task that serves their listener.
#[derive(Debug, Default)]
pub(super) struct NetworkNamespace(
    Vec<OwnedFd>,
    #[expect(dead_code, reason = "dropping it ends the task")] Option<ProxyTask>,
);

impl NetworkNamespace {
    /// Sends the namespaces to the other end of `socket`, and after them `last`, if there is one. Without either, sends a byte
    /// without descriptors.
    ///
    /// # Errors
    /// Fails if the other end is closed.
    pub(super) fn send(
        network: Option<&Self>,
        last: Option<BorrowedFd<'_>>,
        socket: impl AsFd,
    ) -> io::Result<()> {
        let namespaces = network.iter().flat_map(|network| &network.0).map(AsFd::as_fd);
        let descriptors: Vec<BorrowedFd<'_>> = namespaces.chain(last).collect();
        fd_passing::send(socket, &CARRIER, &descriptors)
    }

    /// Receives the namespaces from the other end of `socket`.
    ///
    /// # Errors
    /// Fails if nothing was received or `socket` is not a socket.
    pub(super) fn receive(socket: impl AsFd) -> io::Result<Self> {
        fd_passing::receive(socket, &mut [0; CARRIER.len()]).map(|descriptors| Self(descriptors, None))
    }

    /// Takes the descriptor that follows the namespaces, a listener in the network.
    pub(super) fn take_listener(&mut self) -> Option<TcpListener> {
        self.take_last().map(TcpListener::from)
    }

    /// Takes the last descriptor.
    pub(super) fn take_last(&mut self) -> Option<OwnedFd> {
        self.0.pop()
    }

    /// Keeps the task that serves the listener as long as the network.
    pub(super) fn with_task(self, task: Option<ProxyTask>) -> Self {
        Self(self.0, task)
    }

    /// Adds `listener` after the namespaces.
    #[cfg(target_os = "linux")]
    pub(super) fn with_listener(mut self, listener: TcpListener) -> Self {
        self.0.push(listener.into());
        self
    }

    /// Checks whether there is no namespace to join.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the namespaces of this process.
    #[cfg(target_os = "linux")]
    pub(super) fn of_this_process(own_users: bool) -> io::Result<Self> {
        let users = own_users.then_some("/proc/self/ns/user");
        let files = users.into_iter().chain(["/proc/self/ns/net"]);
        Ok(Self(
            files.map(|file| std::fs::File::open(file).map(OwnedFd::from)).collect::<io::Result<_>>()?,
            None,
        ))
    }

    /// Moves this process into the namespaces.
    #[cfg(target_os = "linux")]
    pub(super) fn join(&self) -> io::Result<()> {
        for namespace in &self.0 {
            rustix::thread::move_into_link_name_space(namespace.as_fd(), None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_are_passed_and_bytes_follow_them() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let network = NetworkNamespace(vec![OwnedFd::from(writer)], None);
        NetworkNamespace::send(Some(&network), None, &ours).unwrap();
        (&ours).write_all(b"order").unwrap();
        drop((network, ours));
        let mut received = NetworkNamespace::receive(&theirs).unwrap();
        let mut rest = String::new();
        theirs.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "order");
        std::fs::File::from(received.0.remove(0)).write_all(b"through").unwrap();
        let mut through = String::new();
        reader.read_to_string(&mut through).unwrap();
        assert_eq!(through, "through");
    }

    #[test]
    fn a_missing_network_differs_from_a_missing_message() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        NetworkNamespace::send(None, None, &ours).unwrap();
        assert!(NetworkNamespace::receive(&theirs).unwrap().is_empty());
        drop(ours);
        assert!(NetworkNamespace::receive(&theirs).is_err());
    }
}
