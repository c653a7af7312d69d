//! The network that the confined commands of one run share: nobody else is on it, but a server that one of them runs in
//! the background answers the next.
//!
//! A launcher process makes the namespaces once, hands their descriptors to the agent and ends; the agent hands them to
//! the launcher of each command, in the first message of its control socket. Without root the network belongs to a user
//! namespace, which is joined first: only inside of it is a process allowed to change its network.

use super::fd_passing;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The byte that carries the descriptors: a socket passes none without one.
const CARRIER: [u8; 1] = [0];

/// The namespaces of a run's commands, in the order in which they are joined: users (not as root), network.
#[derive(Debug, Default)]
pub(super) struct NetworkNamespace(Vec<OwnedFd>);

impl NetworkNamespace {
    /// Sends it to the other end of `socket`; without one, only the byte that says so.
    ///
    /// # Errors
    /// When nobody listens.
    pub(super) fn send(network: Option<&Self>, socket: impl AsFd) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> =
            network.iter().flat_map(|network| &network.0).map(AsFd::as_fd).collect();
        fd_passing::send(socket, &CARRIER, &descriptors)
    }

    /// What the other end of `socket` sent.
    ///
    /// # Errors
    /// When it sent nothing, or this is no socket.
    pub(super) fn receive(socket: impl AsFd) -> io::Result<Self> {
        fd_passing::receive(socket, &mut [0; CARRIER.len()]).map(Self)
    }

    /// Whether there is none to join.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The namespaces that this process is in.
    #[cfg(target_os = "linux")]
    pub(super) fn of_this_process(own_users: bool) -> io::Result<Self> {
        let users = own_users.then_some("/proc/self/ns/user");
        let files = users.into_iter().chain(["/proc/self/ns/net"]);
        Ok(Self(files.map(|file| std::fs::File::open(file).map(OwnedFd::from)).collect::<io::Result<_>>()?))
    }

    /// Moves this process into it.
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
    fn descriptors_survive_the_way_and_bytes_follow_them() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let network = NetworkNamespace(vec![OwnedFd::from(writer)]);
        NetworkNamespace::send(Some(&network), &ours).unwrap();
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
    fn no_network_is_told_apart_from_no_message() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        NetworkNamespace::send(None, &ours).unwrap();
        assert!(NetworkNamespace::receive(&theirs).unwrap().is_empty());
        drop(ours);
        assert!(NetworkNamespace::receive(&theirs).is_err());
    }
}
