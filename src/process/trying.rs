//! Finds out how commands are confined here by having a launcher process try to get out.

use super::launch::{Launcher, PROBE_TIMEOUT, null};
use super::network::Network;
use super::order::{Answer, Order};
use super::proving_ground::ProvingGround;
use super::sandbox::{Breaches, Reach, Trial};
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
            match self.try_out(tier) {
                Ok(breaches) if breaches.none() => return Ok(tier),
                Err(Untried::NotDone(error)) => return Err(error),
                Ok(_) | Err(Untried::NotHere(_)) => {}
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
    pub fn try_out(&self, tier: Tier) -> Result<Breaches, Untried> {
        let Some(confinement) = self.confinement.as_ref().filter(|_| tier.confines()) else {
            return self.probe(tier, Path::new("/"), Reach::default(), None);
        };
        // It begins while we make what is to be tried.
        self.start_fork_server()?;
        let ground = confinement.walls().and_then(|walls| ProvingGround::new(walls.scratch()));
        let ground = ground.map_err(Untried::NotDone)?;
        let breaches = self.probe(tier, ground.place(), ground.reach.clone(), Some(ground.trial.clone()))?;
        Ok(ground.judge(breaches))
    }

    fn probe(
        &self,
        tier: Tier,
        place: &Path,
        reach: Reach,
        trial: Option<Trial>,
    ) -> Result<Breaches, Untried> {
        let (guard, control) = self.split_off(place, [&null()?, &null()?], None)?;
        let answer = ask(&control, &Order { reach, trial, ..Order::question(tier) });
        guard.kill();
        match answer? {
            Some(Answer::Exited(breaches)) => Ok(Breaches(breaches)),
            Some(Answer::Refused(errno) | Answer::NotStarted(errno)) => {
                Err(io::Error::from_raw_os_error(errno).into())
            }
            Some(Answer::Signalled(_) | Answer::Exceeded(_)) | None => {
                Err(io::Error::other("the trial was broken off").into())
            }
        }
    }
}

/// Gives the guard behind `control` its order; what it answers.
fn ask(mut control: &UnixStream, order: &Order) -> io::Result<Option<Answer>> {
    let mut answer = [0; Answer::BYTES];
    control.set_read_timeout(Some(PROBE_TIMEOUT))?;
    Network::send(None, control)?;
    control.write_all(&order.encode()?)?;
    control.read_exact(&mut answer)?;
    Ok(Answer::decode(&answer))
}

/// Why nothing is known of what a tier holds.
#[derive(Debug, thiserror::Error)]
pub enum Untried {
    /// It is not to be had here.
    #[error("{0}")]
    NotHere(io::Error),
    /// Another time it may be.
    #[error("could not be tried: {0}")]
    NotDone(io::Error),
}

impl From<io::Error> for Untried {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{Interrupted, OutOfMemory, StorageFull, TimedOut, WouldBlock};
        // EAGAIN is `WouldBlock`: no process more, or no answer within the time that is given.
        let passes = matches!(error.kind(), Interrupted | OutOfMemory | StorageFull | TimedOut | WouldBlock);
        let no_descriptors = matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE));
        if passes || no_descriptors { Self::NotDone(error) } else { Self::NotHere(error) }
    }
}
