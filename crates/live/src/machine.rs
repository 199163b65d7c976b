//! A snapshot as a machine of the engine: every frame in the engine's hands as it was in the
//! kernel's.
//!
//! Users' pages can be moved; nobody's pins are known. What the kernel uses stays where it is.
//! Pages that lay on CPUs' lists are on such lists again, those of a pageblock on one CPU's.
//! The number that the engine keeps with a page is the frame on which it was found, so its use is
//! known after all moves.

use crate::frame::State;
use crate::snapshot::{FoundZone, Piece, Snapshot, engine_order};
use kontig_mm::import::{ImportedBlock, ImportedMarks, Use};
use kontig_mm::state::Watermarks;
use kontig_mm::sysctl::Sysctl;
use kontig_mm::types::{MAX_ORDER, PAGE_SIZE, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use kontig_mm::{CpuId, MachineSpec, Memory, PageFlags, Pfn, Profile, ZoneSpec, ZoneType};

/// Sysctls whose effect the zones' marks are, which are the host's own.
const IN_THE_MARKS: [&str; 2] = ["min_free_kbytes", "watermark_scale_factor"];

impl Snapshot {
    /// The machine, by the rules of `profile`; with `lru`, it keeps users' pages in an order, which
    /// is the addresses'.
    ///
    /// # Errors
    /// In one line, why the engine cannot be this host.
    pub fn machine(&self, profile: &Profile, lru: bool) -> Result<Memory, String> {
        self.made(profile, lru, true)
    }

    /// The machine for a host of the engine's that knows single pages of users and huge ones, but
    /// no other folios: those are taken apart. The sysctls that set the marks have the host's
    /// values, so a change starts from there.
    ///
    /// # Errors
    /// In one line, why the engine cannot be this host.
    pub fn machine_of_pages(&self, profile: &Profile, lru: bool) -> Result<Memory, String> {
        let mut memory = self.made(profile, lru, false)?;
        for (name, value) in self.host.sysctls.iter().filter(|(name, _)| IN_THE_MARKS.contains(&name.as_str())) {
            if Sysctl::find(name).is_some_and(|s| s.exists(profile)) {
                let _ = memory.sysctl_write(name, value);
            }
        }
        memory.begin_with_settings_in_force();
        Ok(memory)
    }

    /// The users' pages that [`Snapshot::machine_of_pages`] has, by address: the first frame, how
    /// many there are, and their use.
    pub fn pages_of_users(&self) -> impl Iterator<Item = (u32, usize, State)> + '_ {
        let zones = self.zones.iter().filter(|z| z.managed > 0);
        let movable = zones.flat_map(|z| self.pieces(z.frames())).filter(|piece| piece.state.is_movable());
        movable.filter(|piece| engine_order(piece.pages).is_some()).flat_map(|piece| {
            let each = unit(&piece);
            (piece.pfn..piece.pfn + piece.pages).step_by(each).map(move |pfn| (pfn as u32, each, piece.state))
        })
    }

    /// Builds the machine, with users' folios as they are or taken apart.
    fn made(&self, profile: &Profile, lru: bool, folios: bool) -> Result<Memory, String> {
        self.suits()?;
        let zones: Vec<&FoundZone> = self.zones.iter().filter(|z| z.managed > 0).collect();
        let specs: Vec<ZoneSpec> = zones
            .iter()
            .map(|z| spec(z, if folios { z.managed } else { z.managed_at_most() }))
            .collect::<Result<_, _>>()?;
        let marks: Vec<ImportedMarks> = zones.iter().map(|z| marks(z)).collect();
        let types: Vec<_> =
            (0..self.nr_frames().div_ceil(self.pages_per_block())).map(|b| self.block_type(b)).collect();
        let cpus = self.host.cpus.max(1);
        let spec = MachineSpec { cpus, zones: specs, thp: false, lru };
        let blocks = zones.iter().flat_map(|z| self.pieces(z.frames())).flat_map(|piece| {
            let each = if folios { piece.pages } else { unit(&piece) };
            let used = move |pfn: usize| match piece.state {
                State::Hole | State::NotManaged | State::Reserved | State::Offline => None,
                State::Free => Some(Use::Free),
                // A run that goes on gets it; compaction does not.
                State::Deferred => (!folios).then_some(Use::Free),
                State::Cached => Some(Use::Cached(CpuId::new(pfn / self.pages_per_block() % cpus))),
                state if state.is_movable() => Some(Use::Lru(flags(state, lru), pfn as u32)),
                _ => Some(Use::Kernel),
            };
            let found = move |pfn: usize| {
                Some(ImportedBlock { pfn: Pfn::new(pfn as u32), order: engine_order(each)?, used: used(pfn)? })
            };
            (piece.pfn..piece.pfn + piece.pages).step_by(each).filter_map(found)
        });
        let mut memory = Memory::import(&spec, profile.clone(), &types, &marks, blocks)?;
        for (name, value) in &self.host.sysctls {
            let known = Sysctl::find(name).is_some_and(|s| s.exists(profile)) && !IN_THE_MARKS.contains(&name.as_str());
            // A value that the rules of this kernel do not allow decides nothing in them.
            let _ = known.then(|| memory.sysctl_write(name, value));
        }
        memory.take_work();
        let _ = memory.take_wakes().count();
        Ok(memory)
    }

    /// Whether the engine can be this host.
    ///
    /// # Errors
    /// In one line, why not.
    pub fn suits(&self) -> Result<(), String> {
        let host = &self.host;
        if host.page_size != PAGE_SIZE || host.block_order != PAGEBLOCK_ORDER.get() {
            return Err(format!(
                "the engine has pages of 4 KiB and pageblocks of order 9, this host pages of {} KiB and pageblocks \
                 of order {}",
                host.page_size / 1024,
                host.block_order
            ));
        }
        match self.max_order() == usize::from(MAX_ORDER.get()) {
            true => Ok(()),
            false => Err(format!("the engine has free blocks up to order 10, this host up to {}", self.max_order())),
        }
    }
}

fn spec(zone: &FoundZone, managed: u64) -> Result<ZoneSpec, String> {
    let kind = ZoneType::ALL.into_iter().find(|k| k.name() == zone.name);
    let kind = kind.ok_or_else(|| format!("the engine has no zone '{}'", zone.name))?;
    let pages = u64::from(PAGEBLOCK_PAGES);
    let (start, end) = (zone.start / pages * pages, (zone.start + zone.spanned).next_multiple_of(pages));
    let fits = |pfn: u64| u32::try_from(pfn).map_err(|_| format!("{}: ends beyond 16 TiB", zone.title()));
    let (start, end) = (fits(start)?, fits(end)?);
    Ok(ZoneSpec { node: zone.node as usize, kind, start, end, present: zone.present, managed })
}

fn marks(zone: &FoundZone) -> ImportedMarks {
    let [min, low, high, promo] = zone.marks;
    ImportedMarks { marks: Watermarks { min, low, high, promo }, boost: zone.boost }
}

/// Pages of each part of a piece that is taken apart, except huge pages of processes.
fn unit(piece: &Piece) -> usize {
    let is_file = matches!(piece.state, State::FileClean | State::FileDirty | State::FileMapped);
    let stays = !piece.state.is_movable() || (piece.pages == PAGEBLOCK_PAGES as usize && !is_file);
    if stays { piece.pages } else { 1 }
}

/// On which list a page is. A machine that keeps no order has only one.
fn flags(state: State, lru: bool) -> PageFlags {
    match state {
        _ if !lru => PageFlags::ANON,
        State::Locked => PageFlags::UNEVICTABLE,
        State::FileClean | State::FileDirty | State::FileMapped => PageFlags::FILE,
        _ => PageFlags::ANON,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_has_the_memory_that_is_initialised_when_it_is_wanted_and_compaction_has_not() {
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"#,
            r#""cpus":1,"pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":8192,"#,
            r#""present":8192,"managed":6144,"marks":[20,25,30,35],"boost":0,"protection":[0,0],"cached":0,"#,
            r#""deferred":2048,"free":[0,0,0,0,0,0,0,0,0,0,4],"blocks":null}]}"#,
        );
        let text = format!("{header}\n0 M a512 *4\n800 M F512 *8\n1800 M i512 *4\n");
        let snapshot = Snapshot::parse(&text).expect("a snapshot");
        assert_eq!(snapshot.to_text(), text);
        let profile = kontig_profiles::linux("6.12");
        let free = |memory: Memory| memory.zones().iter().map(|z| z.nr_free(MAX_ORDER)).sum::<u64>();
        assert_eq!(free(snapshot.machine(&profile, false).expect("a machine")), 4);
        assert_eq!(free(snapshot.machine_of_pages(&profile, false).expect("a machine")), 6);
        let header = header.replace(r#""sysctls":[]"#, r#""sysctls":[["min_free_kbytes","80"]]"#);
        let snapshot = Snapshot::parse(&text.replacen(text.lines().next().unwrap(), &header, 1)).expect("a snapshot");
        let memory = snapshot.machine_of_pages(&profile, false).expect("a machine");
        let min_free = Sysctl::find("vm.min_free_kbytes").expect("it is known");
        assert_eq!(memory.sysctl_at_boot(min_free), Some(80), "what is set later is compared with the host's value");
    }
}
