//! Small machines for the engine's own tests.

use crate::boot::{MachineSpec, ZoneSpec};
use crate::rules::Profile;
use crate::state::Memory;
use crate::types::ZoneType;
use alloc::vec;

/// The profile of this name, from the files. It goes by way of text: what the files are read with is built with the
/// engine as a library, whose types are not those of its own tests.
pub(crate) fn linux(name: &str) -> Profile {
    let text = toml::to_string(&kontig_profiles::linux(name)).expect("a profile can be written");
    toml::from_str(&text).expect("and read")
}

/// One Normal zone of so many pageblocks and two CPUs, profile 6.1.
pub(crate) fn machine(blocks: u32) -> Memory {
    machine_with(blocks, linux("6.1"))
}

/// The same under another profile.
pub(crate) fn machine_with(blocks: u32, profile: Profile) -> Memory {
    let pages = u64::from(blocks) * 512;
    let zone =
        ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: blocks * 512, present: pages, managed: pages };
    Memory::new(&MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: false }, profile).expect("a valid machine")
}
