//! Finds the strongest confinement that works here by running a launcher process that tries to break out of it.

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
    /// Returns the strongest tier that confines as promised.
    ///
    /// # Errors
    /// Fails if a probe is inconclusive. A weaker tier is not chosen in that case.
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

    /// Returns the available tiers, strongest first.
    pub fn tiers(&self) -> Vec<Tier> {
        let confining: &[Tier] =
            if self.confinement.is_some() { &[Tier::Full, Tier::Bubblewrap, Tier::Rules] } else { &[] };
        let tiers = confining.iter().chain(&[Tier::Namespace, Tier::Subreaper]);
        tiers.copied().filter(|_| cfg!(target_os = "linux")).collect()
    }

    /// Runs a launcher process in `tier` that tries to break out of it instead of starting a command.
    ///
    /// # Errors
    /// Fails if the kernel refuses the tier or the probe cannot run.
    pub fn probe_tier(&self, tier: Tier) -> Result<Breaches, ProbeError> {
        let Some(confinement) = self.confinement.as_ref().filter(|_| tier.confines()) else {
            return self.run_probe(tier, Path::new("/"), SandboxPolicy::default(), None);
        };
        // It starts while the probe directory is created.
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
        cwd: &Path,
        policy: SandboxPolicy,
        probe: Option<SandboxProbe>,
    ) -> Result<Breaches, ProbeError> {
        let (guard, control) = self.fork_guard(cwd, [&open_dev_null()?, &open_dev_null()?], None)?;
        let answer = ask(&control, &LaunchRequest { policy, probe, ..LaunchRequest::without_command(tier) });
        guard.kill();
        match answer? {
            Some(LaunchReply::Exited(breaches)) => Ok(Breaches(breaches)),
            Some(LaunchReply::Refused(errno) | LaunchReply::NotStarted(errno)) => {
                Err(io::Error::from_raw_os_error(errno).into())
            }
            Some(LaunchReply::Left { .. } | LaunchReply::Signalled(_) | LaunchReply::Exceeded(_)) | None => {
                Err(io::Error::other("the probe was interrupted").into())
            }
        }
    }
}

/// Sends the request to the guard behind `control` and returns its reply.
fn ask(mut control: &UnixStream, request: &LaunchRequest) -> io::Result<Option<LaunchReply>> {
    let mut answer = [0; LaunchReply::BYTES];
    control.set_read_timeout(Some(PROBE_TIMEOUT))?;
    NetworkNamespace::send(None, None, control)?;
    control.write_all(&request.encode()?)?;
    control.read_exact(&mut answer)?;
    Ok(LaunchReply::decode(&answer))
}

/// Reasons why a probe has no result.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The tier is unavailable here.
    #[error("{0}")]
    Unavailable(io::Error),
    /// The probe failed for a temporary reason.
    #[error("could not be tried: {0}")]
    Inconclusive(io::Error),
}

impl From<io::Error> for ProbeError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{Interrupted, OutOfMemory, StorageFull, TimedOut, WouldBlock};
        // EAGAIN is `WouldBlock`: too many processes, or no reply within the time limit.
        let passes = matches!(error.kind(), Interrupted | OutOfMemory | StorageFull | TimedOut | WouldBlock);
        let no_descriptors = matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE));
        if passes || no_descriptors { Self::Inconclusive(error) } else { Self::Unavailable(error) }
    }
}
