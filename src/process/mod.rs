//! Children: every program is started, limited and ended here.

pub mod barrier;
pub mod capture;
mod child;
mod descriptors;
pub mod environment;
mod fork_server;
#[cfg(target_os = "linux")]
mod guard;
pub mod launch;
pub mod limits;
pub mod memory;
mod network;
mod order;
#[cfg(target_os = "linux")]
mod program;
pub mod protected;
mod proving_ground;
pub mod recent;
mod remembered;
mod running;
pub mod sandbox;
pub mod scratch;
pub mod shell;
mod started;
#[cfg(target_os = "linux")]
mod system;
mod tier;
#[cfg(target_os = "linux")]
mod traces;
#[cfg(target_os = "linux")]
mod tree;
pub mod trying;
pub mod umask;

use crate::secret::Secret;

/// Keeps the environment and the memory of this process, which hold keys, from the eyes of its own children: `/proc`
/// shows them to every process of the same user, and only a pid namespace hides us from a command. Root sees all the same:
/// what it must not see is overwritten ([`scrub_secrets`]).
pub fn disable_dumping() {
    #[cfg(target_os = "linux")]
    // Where the kernel refuses, we are as visible as any other program.
    let _as_visible_as_others =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Overwrites `secrets`, which have been read, in what the kernel shows of the start of this process.
pub fn scrub_secrets<'a>(secrets: impl Iterator<Item = &'a Secret>) {
    #[cfg(target_os = "linux")]
    traces::scrub(secrets);
    #[cfg(not(target_os = "linux"))]
    drop(secrets);
}
