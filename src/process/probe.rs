//! Finds out how commands are confined here by having a launcher process try to get out.

use super::launch::{Launcher, PROBE_TIMEOUT, open_dev_null};
use super::launch_protocol::{LaunchReply, LaunchRequest};
use super::network_namespace::NetworkNamespace;
use super::probe_dir::ProbeDir;
use super::sandbox::{Breaches, SandboxPolicy, SandboxProbe};
use super::tier::Tier;
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

impl Launcher {
    /// The strongest tier that holds what it claims.
    ///
    /// # Errors
    /// When one could not be tried: that is no reason to take a weaker one.
    pub(super) fn find_tier(&self) -> io::Result<Tier> {
        for tier in self.tiers() {
            match self.probe_tier(tier) {
                Ok(breaches) if breaches.is_empty() => return Ok(tier),
                Err(ProbeError::Inconclusive(error)) => return Err(error),
                Ok(_) | Err(ProbeError::Unavailable(_)) => {}
            }
        }
        Ok(Tier::Group)
    }

    /// The tiers there may be, the strongest first.
    pub fn tiers(&self) -> Vec<Tier> {
        let confining: &[Tier] =
            if self.confinement.is_some() { &[Tier::Full, Tier::Bubblewrap, Tier::Rules] } else { &[] };
        let tiers = confining.iter().chain(&[Tier::Namespace, Tier::Subreaper]);
        tiers.copied().filter(|_| cfg!(target_os = "linux")).collect()
    }

    /// Has a launcher process set `tier` up and, instead of starting anything in it, try to get out.
    ///
    /// # Errors
    /// When the kernel refuses the tier, or it cannot be tried.
    pub fn probe_tier(&self, tier: Tier) -> Result<Breaches, ProbeError> {
        let Some(confinement) = self.confinement.as_ref().filter(|_| tier.confines()) else {
            return self.run_probe(tier, Path::new("/"), SandboxPolicy::default(), None);
        };
        // It begins while we make what is to be tried.
        self.start_fork_server()?;
        let probe_dir = confinement.sandbox().and_then(|sandbox| ProbeDir::new(sandbox.scratch()));
        let probe_dir = probe_dir.map_err(ProbeError::Inconclusive)?;
        let breaches =
            self.run_probe(tier, probe_dir.path(), probe_dir.policy.clone(), Some(probe_dir.probe.clone()))?;
        Ok(probe_dir.with_received_datagram(breaches))
    }

    fn run_probe(
        &self,
        tier: Tier,
        place: &Path,
        policy: SandboxPolicy,
        probe: Option<SandboxProbe>,
    ) -> Result<Breaches, ProbeError> {
        let (guard, control) = self.fork_guard(place, [&open_dev_null()?, &open_dev_null()?], None)?;
        let answer = ask(&control, &LaunchRequest { policy, probe, ..LaunchRequest::without_command(tier) });
        guard.kill();
        match answer? {
            Some(LaunchReply::Exited(breaches)) => Ok(Breaches(breaches)),
            Some(LaunchReply::Refused(errno) | LaunchReply::NotStarted(errno)) => {
                Err(io::Error::from_raw_os_error(errno).into())
            }
            Some(LaunchReply::Signalled(_) | LaunchReply::Exceeded(_)) | None => {
                Err(io::Error::other("the probe was broken off").into())
            }
        }
    }
}

/// Gives the guard behind `control` its request; what it answers.
fn ask(mut control: &UnixStream, request: &LaunchRequest) -> io::Result<Option<LaunchReply>> {
    let mut answer = [0; LaunchReply::BYTES];
    control.set_read_timeout(Some(PROBE_TIMEOUT))?;
    NetworkNamespace::send(None, control)?;
    control.write_all(&request.encode()?)?;
    control.read_exact(&mut answer)?;
    Ok(LaunchReply::decode(&answer))
}

/// Why nothing is known of what a tier holds.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It is not to be had here.
    #[error("{0}")]
    Unavailable(io::Error),
    /// Another time it may be.
    #[error("could not be tried: {0}")]
    Inconclusive(io::Error),
}

impl From<io::Error> for ProbeError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{Interrupted, OutOfMemory, StorageFull, TimedOut, WouldBlock};
        // EAGAIN is `WouldBlock`: no process more, or no answer within the time that is given.
        let passes = matches!(error.kind(), Interrupted | OutOfMemory | StorageFull | TimedOut | WouldBlock);
        let no_descriptors = matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE));
        if passes || no_descriptors { Self::Inconclusive(error) } else { Self::Unavailable(error) }
    }
}
