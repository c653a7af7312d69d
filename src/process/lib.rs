//! Starts, limits and ends child processes.

pub mod allocator;
pub mod barrier;
pub mod capture;
mod code_pages;
mod command;
mod command_registry;
pub mod editor;
pub mod environment;
#[cfg(target_os = "linux")]
pub mod exec;
mod fd_passing;
mod fork_server;
#[cfg(target_os = "linux")]
mod guard;
pub mod launch;
mod launch_protocol;
pub mod limits;
mod network_namespace;
pub mod notifier;
pub mod pager;
#[cfg(target_os = "linux")]
mod pids_cgroup;
pub mod probe;
mod probe_dir;
pub mod process_limit;
#[cfg(target_os = "linux")]
mod process_tree;
pub mod program;
pub mod protected;
mod proxy_listener;
pub mod recent_output;
mod running_command;
pub mod sandbox;
pub mod scratch_dir;
#[cfg(target_os = "linux")]
mod secret_scrub;
pub mod server_process;
mod shared_network;
pub mod shell;
#[cfg(target_os = "linux")]
mod syscalls;
mod tier;
mod tier_cache;
pub mod umask;
#[cfg(target_os = "linux")]
mod watch;

use agent_core::secret::Secret;

/// Hides the environment and memory of this process, which contain keys, from its children. `/proc` shows them to every process
/// of the same user, and only a pid namespace hides this process from a command. Root can still read them, so [`scrub_secrets`]
/// overwrites the secrets.
pub fn disable_dumping() {
    #[cfg(target_os = "linux")]
    // If the kernel refuses, this process is as visible as any other.
    let _best_effort = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Overwrites `secrets` in the kernel's view of this process's arguments and environment. Must be called after they were read.
pub fn scrub_secrets<'a>(secrets: impl Iterator<Item = &'a Secret>) {
    #[cfg(target_os = "linux")]
    secret_scrub::scrub(secrets);
    #[cfg(not(target_os = "linux"))]
    drop(secrets);
}
