//! Drops privileges of a command, whichever user runs it.

use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;

/// Capabilities that root retains to work on files of several owners, for example in installations and builds. All others would
/// allow access to other processes or bypassing the sandbox.
const RETAINED_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// Upper bound for capability numbers, above that of any kernel. It ends the loop over them.
const CAPABILITIES: u32 = 64;

/// Niceness of a command (0 to 19), which favours the user's other programs.
const NICENESS: i32 = 5;

/// Permanently drops the privileges that are not needed to run commands.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn drop_privileges() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    // Hides this process's memory and descriptors from the commands below it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    drop_capabilities()?;
    let _best_effort = rustix::process::nice(NICENESS);
    Ok(())
}

fn drop_capabilities() -> io::Result<()> {
    for number in 0..CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if RETAINED_CAPABILITIES.contains(capability) {
            continue;
        }
        // Removal requires the capability to do so, and a process without it cannot use the set. A number above the last
        // capability cannot be removed either.
        if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
    let mut sets: CapabilitySets = rustix::thread::capabilities(None)?;
    sets.effective &= RETAINED_CAPABILITIES;
    sets.permitted &= RETAINED_CAPABILITIES;
    sets.inheritable = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
