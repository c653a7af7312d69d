//! What a command cannot do whoever runs it: gain rights.

use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;

/// What root keeps: to work on files of several owners, as installations and builds of mixed ownership do. Everything
/// else could look into other processes, or undo the sandbox.
const RETAINED_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// The capabilities there can be: more than any kernel knows, which ends the loop over them.
const CAPABILITIES: u32 = 64;

/// How much a command yields to the person's own programs (0 to 19).
const NICENESS: i32 = 5;

/// Gives up for good what is not needed to run commands.
///
/// # Errors
/// When the kernel refuses.
pub fn drop_privileges() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    // Our memory and descriptors are not for the commands below us.
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
        // Only who has the right to can, and who has not has no use for the set; nor can one beyond the last be removed.
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
