//! Tries to get through the walls: what a tier claims is what a process inside of it could and could not do.

use super::{BEYOND_RULES, Breaches, Trial, View};
use crate::process::system::{self, Fork};
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

/// How long a connection is waited for; on this machine it stands at once or never.
const CONNECT_TIME: Duration = Duration::from_millis(50);

/// Makes the attempts. Called by a process that is confined.
#[expect(clippy::disallowed_methods, reason = "to be tried is what it is for")]
pub fn attempt(trial: &Trial, view: View) -> Breaches {
    let file = trial.outside.join("file");
    let protected = trial.inside.join("protected");
    let deep = trial.around.join("deep");
    let done = [
        File::options().append(true).open(&file).is_ok(),
        File::create_new(trial.outside.join("new")).is_ok(),
        set_mode(&file).is_ok(),
        File::options().append(true).open(protected.join("file")).is_ok(),
        std::fs::rename(&protected, trial.inside.join("moved")).is_ok(),
        std::fs::read(trial.hidden.join("file")).is_ok_and(|bytes| !bytes.is_empty()),
        TcpStream::connect_timeout(&trial.tcp, CONNECT_TIME).is_ok(),
        connects_within(&trial.hidden),
        UnixAddress::from_abstract_name(&trial.name).and_then(|name| UnixStream::connect_addr(&name)).is_ok(),
        is_agent(trial) && std::fs::read(format!("/proc/{}/environ", trial.agent)).is_ok(),
        is_agent(trial) && signals(trial.agent).is_ok(),
        system::unshare(UnshareFlags::NEWUSER).is_ok(),
        File::create_new(trial.inside.join("new")).is_err(),
        fork().is_err(),
        File::options().write(true).open("/dev/null").is_err(),
        File::options().read(true).custom_flags(libc::O_TRUNC).open(&file).is_ok(),
        reaches(&deep) || std::fs::rename(&deep, trial.around.join("moved")).is_ok(),
    ];
    // Whether it arrives is for the agent to see.
    let _sent = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"trial", trial.udp));
    let claimed = |bit: usize| view == View::Own || !BEYOND_RULES.contains(&bit);
    let bits = done.into_iter().enumerate().filter(|(bit, wrong)| *wrong && claimed(*bit));
    Breaches(bits.fold(0, |mask, (bit, _)| mask | 1 << bit))
}

/// Whether the socket of the directory answers; from within, for its path may be longer than an address can be.
#[expect(clippy::disallowed_methods, reason = "the process inside ends with the trial")]
fn connects_within(directory: &Path) -> bool {
    std::env::set_current_dir(directory).and_then(|()| UnixStream::connect("socket")).is_ok()
}

/// Whether what is hidden below `directory` can be read or changed.
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

fn is_agent(trial: &Trial) -> bool {
    super::started(trial.agent).is_some_and(|started| started == trial.agent_started)
}

#[expect(clippy::exit, reason = "all that this process is for is that it was started")]
fn fork() -> io::Result<()> {
    match system::fork()? {
        Fork::Child => std::process::exit(0),
        Fork::Parent(child) => {
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())?;
            Ok(())
        }
    }
}
