//! Small machines for the engine's own tests.

use crate::boot::{MachineSpec, ZoneSpec};
use crate::profile::Profile;
use crate::state::Memory;
use crate::types::ZoneType;
use alloc::vec;

/// One Normal zone of so many pageblocks and two CPUs, profile 6.1.
pub(crate) fn machine(blocks: u32) -> Memory {
    machine_with(blocks, Profile::linux_6_1())
}

/// The same under another profile.
pub(crate) fn machine_with(blocks: u32, profile: Profile) -> Memory {
    let pages = u64::from(blocks) * 512;
    let zone =
        ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: blocks * 512, present: pages, managed: pages };
    Memory::new(&MachineSpec { cpus: 2, zones: vec![zone], thp: false }, profile).expect("a valid machine")
}
