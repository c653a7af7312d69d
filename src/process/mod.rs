//! Children: every program is started, limited and ended here.

pub mod allocator;
pub mod barrier;
pub mod capture;
mod command;
mod command_registry;
pub mod environment;
#[cfg(target_os = "linux")]
mod exec;
mod fd_passing;
mod fork_server;
#[cfg(target_os = "linux")]
mod guard;
pub mod launch;
mod launch_protocol;
pub mod limits;
mod network_namespace;
#[cfg(target_os = "linux")]
mod pids_cgroup;
pub mod probe;
mod probe_dir;
pub mod process_limit;
#[cfg(target_os = "linux")]
mod process_tree;
pub mod protected;
pub mod recent_output;
mod running_command;
pub mod sandbox;
pub mod scratch_dir;
#[cfg(target_os = "linux")]
mod secret_scrub;
pub mod shell;
#[cfg(target_os = "linux")]
mod syscalls;
mod tier;
mod tier_cache;
pub mod umask;
#[cfg(target_os = "linux")]
mod watch;

use crate::core::secret::Secret;

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
    secret_scrub::scrub(secrets);
    #[cfg(not(target_os = "linux"))]
    drop(secrets);
}
