//! The counters of files, swap and slabs that a zone has in `/proc/zoneinfo`.

/// Events on the pages of a zone.
#[derive(Clone, Copy, Default)]
pub(crate) struct ZoneEvents {
    pub(crate) dirtied: u64,
    pub(crate) written: u64,
}

/// The counters of a zone, by their names in `/proc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZoneCounts {
    file_pages: u64,
    dirty: u64,
    writeback: u64,
    dirtied: u64,
    written: u64,
    slabs: [u64; 2],
}

impl ZoneCounts {
    /// A zone with these events so far.
    pub(super) fn of_events(events: ZoneEvents) -> ZoneCounts {
        ZoneCounts { dirtied: events.dirtied, written: events.written, ..ZoneCounts::default() }
    }

    /// Adds a page of the page cache or of the swap cache.
    pub(super) fn add_page(&mut self, dirty: bool, writeback: bool) {
        self.file_pages += 1;
        self.dirty += u64::from(dirty);
        self.writeback += u64::from(writeback);
    }

    /// Adds the pages of a slab.
    pub(super) fn add_slab(&mut self, pages: u64, reclaimable: bool) {
        self.slabs[usize::from(!reclaimable)] += pages;
    }

    /// A counter; `None` if it is none of these.
    pub fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            "nr_file_pages" => self.file_pages,
            "nr_dirty" => self.dirty,
            "nr_writeback" => self.writeback,
            "nr_zone_write_pending" => self.dirty + self.writeback,
            "nr_dirtied" => self.dirtied,
            "nr_written" => self.written,
            "nr_slab_reclaimable" => self.slabs[0],
            "nr_slab_unreclaimable" => self.slabs[1],
            _ => return None,
        })
    }
}
