//! Runs inside a sandbox and tries to break out of it, to check that the tier confines as promised.

use super::{Breaches, SandboxProbe, UNCHECKED_WITHOUT_VIEW, View};
use crate::syscalls::{self, Fork};
use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::fs::{File, Permissions};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::Path;
use std::time::Duration;

/// Time limit for a connection. On the same machine it succeeds at once or never.
const CONNECT_TIME: Duration = Duration::from_millis(50);

/// Runs all checks. Called by a confined process.
#[expect(clippy::disallowed_methods, reason = "the probe must try these calls")]
pub fn run(probe: &SandboxProbe, view: View) -> Breaches {
    let file = probe.outside.join("file");
    let protected = probe.inside.join("protected");
    let deep = probe.around.join("deep");
    let done = [
        File::options().append(true).open(&file).is_ok(),
        File::create_new(probe.outside.join("new")).is_ok(),
        set_mode(&file).is_ok(),
        File::options().append(true).open(protected.join("file")).is_ok(),
        std::fs::rename(&protected, probe.inside.join("moved")).is_ok(),
        std::fs::read(probe.hidden.join("file")).is_ok_and(|bytes| !bytes.is_empty()),
        TcpStream::connect_timeout(&probe.tcp, CONNECT_TIME).is_ok(),
        connects_within(&probe.hidden),
        UnixAddress::from_abstract_name(&probe.name).and_then(|name| UnixStream::connect_addr(&name)).is_ok(),
        is_agent(probe) && std::fs::read(format!("/proc/{}/environ", probe.agent)).is_ok(),
        is_agent(probe) && signals(probe.agent).is_ok(),
        syscalls::unshare(UnshareFlags::NEWUSER).is_ok(),
        File::create_new(probe.inside.join("new")).is_err(),
        fork().is_err(),
        File::options().write(true).open("/dev/null").is_err(),
        File::options().read(true).custom_flags(libc::O_TRUNC).open(&file).is_ok(),
        reaches(&deep) || std::fs::rename(&deep, probe.around.join("moved")).is_ok(),
    ];
    // The agent checks whether it arrives.
    let _sent = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"probe", probe.udp));
    let claimed = |bit: usize| view == View::Own || !UNCHECKED_WITHOUT_VIEW.contains(&bit);
    let bits = done.into_iter().enumerate().filter(|(bit, wrong)| *wrong && claimed(*bit));
    Breaches(bits.fold(0, |mask, (bit, _)| mask | 1 << bit))
}

/// Checks whether the socket in the directory accepts a connection. Uses a relative path because the full one may exceed the
/// limit of an address.
#[expect(clippy::disallowed_methods, reason = "the process inside ends with the probe")]
fn connects_within(directory: &Path) -> bool {
    std::env::set_current_dir(directory).and_then(|()| UnixStream::connect("socket")).is_ok()
}

/// Checks whether hidden content below `directory` can be read or changed.
fn reaches(directory: &Path) -> bool {
    let hidden = directory.join("hidden");
    let file = hidden.join("file");
    File::open(&file).is_ok()
        || File::options().append(true).open(&file).is_ok()
        || File::create_new(hidden.join("new")).is_ok()
}

fn set_mode(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
}

fn signals(agent: i32) -> io::Result<()> {
    let agent = Pid::from_raw(agent).ok_or_else(|| io::Error::other("no process"))?;
    Ok(rustix::process::test_kill_process(agent)?)
}

fn is_agent(probe: &SandboxProbe) -> bool {
    super::start_time(probe.agent).is_some_and(|started| started == probe.agent_started)
}

#[expect(clippy::exit, reason = "the process only tests that a fork succeeds")]
fn fork() -> io::Result<()> {
    match syscalls::fork()? {
        Fork::Child => std::process::exit(0),
        Fork::Parent(child) => {
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())?;
            Ok(())
        }
    }
}
