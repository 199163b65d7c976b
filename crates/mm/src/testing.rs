//! Small machines for the engine's own tests.

use crate::boot::{MachineSpec, ZoneSpec};
use crate::gfp::Gfp;
use crate::request::Request;
use crate::rules::Profile;
use crate::state::{Memory, PageFlags};
use crate::types::{CpuId, NodeId, Order, Pfn, ZoneType};
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

/// The same, which keeps the order of its pages.
pub(crate) fn ordered_machine(blocks: u32) -> Memory {
    ordered_machine_with(blocks, linux("6.1"))
}

/// The same, which keeps the order of its pages, under another profile.
pub(crate) fn ordered_machine_with(blocks: u32, profile: Profile) -> Memory {
    Memory::new(&MachineSpec { lru: true, ..spec(blocks) }, profile).expect("a valid machine")
}

/// A user's page of this machine, on its way to the LRU through a batch of the first CPU.
pub(crate) fn user_page(m: &mut Memory, flags: PageFlags) -> Pfn {
    let cpu = CpuId::new(0);
    let pfn = m.alloc(Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, Order::ZERO)).expect("memory is free");
    m.lru_add(cpu, pfn, Order::ZERO, flags);
    pfn
}

/// The same under another profile.
pub(crate) fn machine_with(blocks: u32, profile: Profile) -> Memory {
    Memory::new(&spec(blocks), profile).expect("a valid machine")
}

fn spec(blocks: u32) -> MachineSpec {
    let pages = u64::from(blocks) * 512;
    let zone =
        ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: blocks * 512, present: pages, managed: pages };
    MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: false }
}
