//! Finds out how commands are confined here by having a launcher process try to get out.

use super::launch::{Launcher, PROBE_TIMEOUT, null};
use super::network::Network;
use super::order::{Answer, Order, Tier};
use super::proving_ground::ProvingGround;
use super::sandbox::{Breaches, Reach, Trial};
use std::io::{self, Read, Write};
use std::path::Path;

impl Launcher {
    /// The strongest tier that holds what it claims.
    pub(super) fn find_tier(&self) -> Tier {
        let works = |tier: &Tier| self.try_out(*tier).is_ok_and(Breaches::none);
        self.tiers().into_iter().find(works).unwrap_or(Tier::Group)
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
    pub fn try_out(&self, tier: Tier) -> io::Result<Breaches> {
        if !tier.confines() {
            return self.probe(tier, Path::new("/"), Reach::default(), None);
        }
        let unconfined = || io::Error::other("nothing says what is to be held");
        let confinement = self.confinement.as_ref().ok_or_else(unconfined)?;
        let ground = ProvingGround::new(confinement.scratch.path())?;
        let breaches = self.probe(tier, ground.place(), ground.reach.clone(), Some(ground.trial.clone()))?;
        Ok(ground.judge(breaches))
    }

    fn probe(&self, tier: Tier, place: &Path, reach: Reach, trial: Option<Trial>) -> io::Result<Breaches> {
        let (guard, mut control) = self.split_off(place, [&null()?, &null()?])?;
        let order = Order { reach, trial, ..Order::question(tier) };
        let mut answer = [0; Answer::BYTES];
        let result = control
            .set_read_timeout(Some(PROBE_TIMEOUT))
            .and_then(|()| Network::send(None, &control))
            .and_then(|()| control.write_all(&order.encode()?))
            .and_then(|()| control.read_exact(&mut answer));
        guard.kill();
        result?;
        match Answer::decode(&answer) {
            Some(Answer::Exited(breaches)) => Ok(Breaches(breaches)),
            Some(Answer::Refused(errno) | Answer::NotStarted(errno)) => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(Answer::Signalled(_) | Answer::Exceeded(_)) | None => {
                Err(io::Error::other("the trial was broken off"))
            }
        }
    }
}
