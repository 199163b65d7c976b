//! A machine estimated from a host's `/proc/buddyinfo` and, where there is one,
//! `/proc/pagetypeinfo`.
//!
//! What the files say is kept: the free blocks of every order in every zone, and as far as they fit
//! the types of the pageblocks and of the blocks on their lists. What they do not say is drawn from
//! the run's seed: which pageblock has which type, and where in the pageblocks of its type a free
//! block lies. So free memory is spread more evenly than on a host. The rest is in use: in movable
//! pageblocks by processes and files, in others by the kernel. Free pages on CPUs' lists, which no
//! file counts, are in use, too.

mod place;
mod zones;

use super::frames::{BLOCK, Frames, State, by_chance};
use kontig_error::{AskedWrongly, Error};
use kontig_mm::MigrateType;
use kontig_mm::types::PAGE_SIZE;
use kontig_procfs::{BadText, BuddyInfo, PageTypeInfo};
use kontig_program::SplitMix64;
use kontig_sim::MachineFile;
use kontig_sim::machine_file::ZoneEntry;
use kontig_workload::found::FoundProc;
use serde::{Deserialize, Serialize};
use zones::HostZone;

/// The files, with their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcTexts {
    buddyinfo: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pagetypeinfo: Option<Text>,
    /// The share of pages in use in movable pageblocks that are files', %.
    files: f64,
}

/// A file's name and contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    path: String,
    text: String,
}

impl Text {
    fn read(path: &str) -> Result<Text, Error> {
        let unreadable = |e: std::io::Error| AskedWrongly::Unreadable { path: path.into(), reason: e.to_string() };
        let mut text = std::fs::read_to_string(path).map_err(unreadable)?;
        // A paste may lack the end of its last line.
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(Text { path: path.into(), text })
    }

    /// An error about a line of it, the first if none is meant.
    fn wrong(&self, line: usize, reason: String) -> Error {
        AskedWrongly::Malformed { path: self.path.clone(), line, reason }.into()
    }
}

impl ProcTexts {
    /// Reads the files.
    ///
    /// # Errors
    /// If one cannot be read, is none of its kind, or contradicts the other: the file and the line.
    pub(super) fn read(found: &FoundProc) -> Result<ProcTexts, Error> {
        let texts = ProcTexts {
            buddyinfo: Text::read(&found.buddyinfo)?,
            pagetypeinfo: found.pagetypeinfo.as_deref().map(Text::read).transpose()?,
            files: found.files,
        };
        texts.zones()?;
        Ok(texts)
    }

    pub(super) fn files(&self) -> f64 {
        self.files
    }

    /// The counts that they have of each zone.
    fn zones(&self) -> Result<Vec<HostZone>, Error> {
        let malformed = |e: BadText| AskedWrongly::Malformed { path: e.file, line: e.line, reason: e.reason };
        let Text { path, text } = &self.buddyinfo;
        let buddy = BuddyInfo::parse(path, text).map_err(malformed)?;
        let mut zones = zones::of(&buddy).map_err(|(i, reason)| self.buddyinfo.wrong(i + 1, reason))?;
        if let Some(types) = &self.pagetypeinfo {
            let info = PageTypeInfo::parse(&types.path, &types.text).map_err(malformed)?;
            zones::add_types(&mut zones, &info).map_err(|(at, reason)| {
                let line = at.and_then(|at| types.text.lines().position(|line| line.starts_with(&at)));
                types.wrong(line.map_or(1, |line| line + 1), reason)
            })?;
        }
        Ok(zones)
    }

    /// The host as a machine with the costs and disks of another machine: its zones, where
    /// pagetypeinfo says how large they are.
    pub(super) fn on(&self, base: &MachineFile) -> Result<MachineFile, String> {
        let zones = self.zones().map_err(|e| e.to_string())?;
        if self.pagetypeinfo.is_none() {
            zones::fit(&zones, &base.spec()?).map_err(|reason| {
                format!("{}: {reason}: another machine, or add pagetypeinfo, which says it", self.buddyinfo.path)
            })?;
            return Ok(base.clone());
        }
        let size = |frames: usize| format!("{} KiB", frames as u64 * PAGE_SIZE / 1024);
        let entry = |(zone, start): (&HostZone, usize)| ZoneEntry {
            node: zone.node,
            kind: zone.kind.name().into(),
            start: size(start * BLOCK),
            end: size((start + zone.blocks()) * BLOCK),
            reserved: "0".into(),
            source: format!("the pageblocks in {}", self.pagetypeinfo.as_ref().map_or("", |text| &text.path)),
        };
        let zone: Vec<ZoneEntry> = zones.iter().zip(zones::starts(&zones)).map(entry).collect();
        let nodes = |zones: &[ZoneEntry]| zones.iter().map(|zone| zone.node).max();
        let machine = MachineFile {
            name: format!("proc+{}", base.name),
            summary: format!("a host as its /proc was found, with the costs and disks of {}", base.name),
            numa: base.numa.clone().filter(|_| nodes(&base.zone) == nodes(&zone)),
            zone,
            ..base.clone()
        };
        machine.check().map_err(|wrong| wrong.reason)?;
        Ok(machine)
    }

    /// Notes for a run that starts so.
    pub(super) fn notes(&self, base: &str) -> Vec<String> {
        let types = match self.pagetypeinfo {
            Some(_) => "the number of pageblocks of each type, from which zones have their size",
            None => "which has no types, so all pageblocks are movable",
        };
        vec![
            format!(
                "an estimate: starts with the free blocks of {} and {types}; costs and disks are those of {base}",
                self.buddyinfo.path
            ),
            format!(
                "made up, because these files do not show it: where pageblocks of each type and free blocks lie, drawn \
                 from the seed; that {} % of what is in use in movable pageblocks are files and the rest processes' \
                 pages, and that the kernel's are in the others alone; the order in which pages were used",
                self.files
            ),
        ]
    }

    /// Gives every frame its use.
    ///
    /// # Errors
    /// If the free blocks do not fit, which those of a host do.
    pub(super) fn fill(&self, frames: &mut Frames, seed: u64) -> Result<(), String> {
        let mut random = SplitMix64::new(seed);
        let specs = frames.spec.zones.clone();
        for zone in self.zones().map_err(|e| e.to_string())? {
            let spec = specs.iter().find(|spec| (spec.node, spec.kind) == (zone.node, zone.kind));
            let spec = spec.ok_or_else(|| format!("the machine has no {}", zone.title()))?;
            let blocks: Vec<usize> = (spec.start as usize / BLOCK..spec.end as usize / BLOCK).collect();
            let free = place::place(&zone, &blocks, frames, &mut random)
                .map_err(|reason| format!("{}: {}: {reason}", self.buddyinfo.path, zone.title()))?;
            for block in blocks {
                let is_movable = frames.types[block] == MigrateType::Movable;
                for pfn in frames.of_block(block) {
                    frames.states[pfn] = match is_movable {
                        false => State::Kernel,
                        true if by_chance(self.files, &mut random) => State::File,
                        true => State::Process,
                    };
                }
            }
            free.into_iter().for_each(|frames_of| frames.states[frames_of].fill(State::Free));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beginning::Beginning;
    use crate::catalog;
    use kontig_mm::Memory;
    use kontig_procfs::pagetypeinfo::NodeTypes;

    /// 6.1 on a guest of 2 GiB that was used for a while.
    const BUDDYINFO: &str = "\
Node 0, zone      DMA      1      0      1      2      1      1      0      0      1      1      2 
Node 0, zone    DMA32   6351   2412    913    317     90     41     17      9      5      8     23 
";

    const PAGETYPEINFO: &str = "\
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10
Node    0, zone      DMA, type    Unmovable      1      0      1      2      1      1      0      0      1      0      0
Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      0      1      2
Node    0, zone      DMA, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0
Node    0, zone      DMA, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0
Node    0, zone    DMA32, type    Unmovable     51     12     13     17     10      1      7      2      1      0      0
Node    0, zone    DMA32, type      Movable   6000   2300    800    290     70     38     10      6      4      8     23
Node    0, zone    DMA32, type  Reclaimable    300    100    100     10     10      2      0      1      0      0      0
Node    0, zone    DMA32, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0

Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic
Node 0, zone      DMA            3            5            0            0
Node 0, zone    DMA32           90          870           40            0
";

    fn texts(buddyinfo: &str, pagetypeinfo: Option<&str>) -> ProcTexts {
        let of = |path: &str, text: &str| Text { path: path.into(), text: text.into() };
        ProcTexts {
            buddyinfo: of("buddyinfo", buddyinfo),
            pagetypeinfo: pagetypeinfo.map(|text| of("pagetypeinfo", text)),
            files: 30.0,
        }
    }

    fn memory(texts: ProcTexts, seed: u64) -> Memory {
        let base = catalog::machine("box-2g").expect("it is built in").0;
        let machine = texts.on(&base).expect("it can be that");
        let beginning = Beginning::Proc(texts);
        let memory = beginning.memory(&machine, &kontig_profiles::linux("6.1"), seed).expect("it fits");
        memory.check().expect("it is consistent");
        memory
    }

    #[test]
    fn a_machine_that_starts_so_prints_the_same_free_blocks_again() {
        for pagetypeinfo in [None, Some(PAGETYPEINFO)] {
            for seed in [1, 2] {
                let memory = memory(texts(BUDDYINFO, pagetypeinfo), seed);
                assert_eq!(BuddyInfo::of(&memory).to_string(), BUDDYINFO, "seed {seed}");
            }
        }
    }

    #[test]
    fn it_prints_the_same_types_again_where_there_was_a_pagetypeinfo() {
        let memory = memory(texts(BUDDYINFO, Some(PAGETYPEINFO)), 1);
        let [host, printed] = [PAGETYPEINFO, &PageTypeInfo::of(&memory).to_string()]
            .map(|text| PageTypeInfo::parse("pagetypeinfo", text).expect("it is one").nodes.remove(0));
        assert!(host.free.iter().all(|row| printed.free.contains(row)), "{printed}");
        let blocks = |of: &NodeTypes| of.blocks[0].zones.iter().map(|(_, n)| n[..3].to_vec()).collect::<Vec<_>>();
        assert_eq!((blocks(&printed), &printed.blocks[0].types[..3]), (blocks(&host), &host.blocks[0].types[..3]));
    }

    #[test]
    fn the_places_of_free_blocks_are_the_seeds() {
        let machine = catalog::machine("box-2g").expect("it is built in").0;
        let states = |seed| {
            let mut frames = Frames::new(machine.spec().expect("it is possible"));
            texts(BUDDYINFO, None).fill(&mut frames, seed).expect("it fits");
            frames.states
        };
        assert_eq!(states(1), states(1));
        assert_ne!(states(1), states(2));
    }

    #[test]
    fn texts_of_two_moments_are_taken_by_buddyinfo() {
        let later = BUDDYINFO.replace("  6351   2412", "  6350   2500");
        let memory = memory(texts(&later, Some(PAGETYPEINFO)), 1);
        assert_eq!(BuddyInfo::of(&memory).to_string(), later);
    }

    #[test]
    fn counts_that_the_kernel_did_not_finish_are_what_buddyinfo_has_more() {
        let buddyinfo = BUDDYINFO.replace("  6351   2412", "120351   2412");
        let info = PAGETYPEINFO.replace("   6000   2300", " >100000   2300");
        let memory = memory(texts(&buddyinfo, Some(&info)), 1);
        assert_eq!(BuddyInfo::of(&memory).to_string(), buddyinfo);
        let printed = PageTypeInfo::of(&memory).to_string();
        assert!(
            printed.contains("Unmovable     51     12") && printed.contains("Reclaimable    300    100"),
            "{printed}"
        );
    }

    #[test]
    fn texts_that_are_none_or_contradict_each_other_are_refused_with_the_line() {
        let said = |buddyinfo: &str, info: &str| {
            let texts = texts(buddyinfo, Some(info));
            texts.zones().map(drop).expect_err("refused").to_string()
        };
        assert_eq!(
            said(&BUDDYINFO.replace("  6351", "  none"), PAGETYPEINFO),
            "buddyinfo:2: 'none' is not a number, or too large"
        );
        assert_eq!(
            said(&BUDDYINFO.replace("DMA32", "HighMem"), PAGETYPEINFO),
            "buddyinfo:2: zone HighMem: the laboratory has DMA, DMA32 and Normal"
        );
        let fewer = BUDDYINFO.replace("     23 \n", "\n").replace("      2 \n", "\n");
        assert_eq!(said(&fewer, PAGETYPEINFO), "buddyinfo:1: 10 orders: the laboratory has 11, from 0 to 10");
        assert_eq!(
            said(BUDDYINFO, &PAGETYPEINFO.replace("order: 9", "order: 8")),
            "pagetypeinfo:1: pageblocks of order 8: the laboratory's have order 9"
        );
        let one = BUDDYINFO.lines().next().map(|line| format!("{line}\n")).expect("two lines");
        assert_eq!(
            said(&one, PAGETYPEINFO),
            "pagetypeinfo:16: node 0 zone DMA32 is not in buddyinfo: take both from one host"
        );
        let few =
            PAGETYPEINFO.replace("          90          870           40", "           9           70            4");
        assert_eq!(
            said(BUDDYINFO, &few),
            "pagetypeinfo:16: node 0 zone DMA32 has 42496 pages, of which buddyinfo has 51283 free: \
             take both from one host"
        );
    }

    #[test]
    fn without_pagetypeinfo_the_machine_has_the_zones() {
        let on = |name: &str| {
            let base = catalog::machine(name).expect("it is built in").0;
            texts(BUDDYINFO, None).on(&base).map(|machine| machine.name)
        };
        assert_eq!(on("box-2g").as_deref(), Ok("box-2g"));
        let remedy = "another machine, or add pagetypeinfo, which says it";
        assert_eq!(on("tiny-64m"), Err(format!("buddyinfo: the machine has no node 0 zone DMA: {remedy}")));
    }
}
