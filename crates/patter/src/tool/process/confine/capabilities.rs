//! Capabilities: what `root` may do beyond other users.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

/// Those that allow to read the memory of any process, and so the API keys in it.
const INSPECTING: [CapabilitySet; 4] =
    [CapabilitySet::SYS_PTRACE, CapabilitySet::SYS_ADMIN, CapabilitySet::PERFMON, CapabilitySet::SYS_RAWIO];

/// Those that a sandbox leaves: they are about files, which other rules restrict, and about the user of a process.
const CONFINED: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Returns whether this process may read the memory of any other, whatever that one says.
pub(super) fn can_inspect_others() -> bool {
    let inspecting = INSPECTING.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
    capabilities(None).is_ok_and(|sets| sets.effective.intersects(inspecting))
}

/// Gives up reading the memory of other processes, in this thread and in the programs it starts.
pub(super) fn stop_inspecting() -> rustix::io::Result<()> {
    if !can_inspect_others() {
        return Ok(());
    }
    // `root` gets the capabilities of this set back with each program that it starts.
    for capability in INSPECTING {
        remove_capability_from_bounding_set(capability)?;
    }
    let inspecting = INSPECTING.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
    keep(inspecting.complement())
}

/// Gives up what a confined command does not need. Programs do not get it back, because they get no new privileges.
pub(super) fn confine() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    keep(CONFINED)
}

fn keep(kept: CapabilitySet) -> rustix::io::Result<()> {
    let current = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: current.effective & kept,
            permitted: current.permitted & kept,
            inheritable: current.inheritable & kept,
        },
    )
}
