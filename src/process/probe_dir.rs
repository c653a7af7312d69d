//! Directory of harmless stand-ins for what the sandbox must protect, used to probe a tier.

use super::sandbox::{Breaches, SandboxPolicy, SandboxProbe, start_time};
use super::scratch_dir::private_temp_dir;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use tempfile::TempDir;

/// Address of a listener on any free port.
const LOOPBACK: &str = "127.0.0.1:0";

/// Directory with the stand-ins. Dropping it removes them.
pub(super) struct ProbeDir {
    /// Probe for the launcher process.
    pub(super) probe: SandboxProbe,
    /// Policy under test.
    pub(super) policy: SandboxPolicy,
    dir: TempDir,
    udp: UdpSocket,
    _tcp: TcpListener,
    _sockets: Vec<UnixListener>,
}

impl ProbeDir {
    /// Creates the stand-ins in a new directory below `parent`.
    ///
    /// # Errors
    /// Fails if it cannot be created or this machine has no loopback device.
    #[expect(clippy::disallowed_methods, reason = "stand-ins are neither workspace nor state")]
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        let dir = private_temp_dir(tempfile::Builder::new().prefix("probe-"), parent)?;
        let root = dir.path().canonicalize()?;
        let [inside, around, outside, hidden, temporary] =
            ["inside", "around", "outside", "hidden", "temporary"].map(|name| root.join(name));
        let (protected, nested) = (inside.join("protected"), around.join("deep/hidden"));
        for directory in [&protected, &nested, &outside, &hidden, &temporary] {
            std::fs::create_dir_all(directory)?;
        }
        for directory in [&protected, &nested, &outside, &hidden] {
            std::fs::write(directory.join("file"), "stand-in")?;
        }
        let tcp = TcpListener::bind(LOOPBACK).map_err(|error| no_loopback(&error))?;
        let udp = UdpSocket::bind(LOOPBACK).map_err(|error| no_loopback(&error))?;
        udp.set_nonblocking(true)?;
        let agent = rustix::process::getpid().as_raw_nonzero().get();
        // Several launchers of one process can be tried at the same time.
        let name = format!("agent-{}", root.file_name().unwrap_or_default().display());
        let sockets = listeners(&hidden, &name)?;
        let probe = SandboxProbe {
            inside: inside.clone(),
            around: around.clone(),
            outside: outside.clone(),
            hidden: hidden.clone(),
            tcp: tcp.local_addr()?,
            udp: udp.local_addr()?,
            name,
            agent,
            agent_started: start_time(agent).unwrap_or(0),
        };
        let (writable, read_only, hidden) = (vec![inside, around], vec![protected], vec![hidden, nested]);
        // Below the host's `/tmp` it would be invisible, and the probe could not test its protection.
        let visible = vec![outside];
        let policy =
            SandboxPolicy { writable, read_only, visible, hidden, temporary, ..SandboxPolicy::default() };
        Ok(Self { probe, policy, dir, udp, _tcp: tcp, _sockets: sockets })
    }

    /// Adds to `breaches` whether the agent received the probe's datagram.
    pub(super) fn with_received_datagram(&self, breaches: Breaches) -> Breaches {
        let arrived = self.udp.recv(&mut [0; 8]).is_ok();
        if arrived { breaches.with_datagram() } else { breaches }
    }

    /// Returns the directory in which the launcher process starts.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn no_loopback(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the loopback device (127.0.0.1) cannot be used: {error}"))
}

/// Binds a socket in the directory and, on Linux, an abstract one of the same name. A socket's path has at most 108 bytes
/// (unix(7)) and user directories can be longer, so the path goes through the directory's descriptor.
#[cfg(target_os = "linux")]
fn listeners(hidden: &Path, name: &str) -> io::Result<Vec<UnixListener>> {
    use std::os::fd::AsRawFd;
    use std::os::linux::net::SocketAddrExt;
    let directory = std::fs::File::open(hidden)?;
    let path = UnixListener::bind(format!("/proc/self/fd/{}/socket", directory.as_raw_fd()))?;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    Ok(vec![path, UnixListener::bind_addr(&address)?])
}

#[cfg(not(target_os = "linux"))]
fn listeners(hidden: &Path, _name: &str) -> io::Result<Vec<UnixListener>> {
    Ok(vec![UnixListener::bind(hidden.join("socket"))?])
}
