//! The machine's proc files, as text in the kernel's formats.
//!
//! The rule: a tool that reads a real machine's files reads these, byte for byte in shape, and each number comes from
//! the engine's state at that moment. What this machine has no such thing of (page cache, slab, swap) is listed and 0.
//! The formats are those of 6.1 as Debian builds it, whatever the profile; of the files under `sys/vm`, there are those
//! the profile has ([`crate::sysctl`]). Source: kernel-behaviour §7.1–7.5, and the
//! recordings' own files. `pagetypeinfo`, `zoneinfo` and `vmstat` have a file each; the counters the last two have in
//! common are in `items`.

mod items;
mod pagetypeinfo;
mod vmstat;
mod zoneinfo;

use crate::state::{Memory, Node, Zone};
use crate::sysctl::{SYSCTLS, Sysctl};
use crate::types::Order;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Write};

impl Memory {
    /// Every file with its path below the directory a host keeps them in.
    pub fn procfs_files(&self) -> Vec<(String, String)> {
        let mut files = vec![
            ("buddyinfo".into(), self.buddyinfo()),
            ("pagetypeinfo".into(), self.pagetypeinfo()),
            ("zoneinfo".into(), self.zoneinfo()),
            ("vmstat".into(), self.vmstat_text()),
            ("extfrag/unusable_index".into(), self.unusable_index()),
            ("extfrag/extfrag_index".into(), self.extfrag_index()),
        ];
        let sysctl = |s: &&Sysctl| Some((format!("sys/vm/{}", s.short_name()), format!("{}\n", self.sysctl_read(s)?)));
        files.extend(SYSCTLS.iter().filter_map(sysctl));
        files
    }

    /// `/proc/buddyinfo`: free blocks of each order, per-CPU lists not included.
    pub fn buddyinfo(&self) -> String {
        self.line_per_zone(|w, zone, order| write!(w, "{:>6} ", zone.nr_free(order)))
    }

    /// `extfrag/unusable_index`: the share of free memory that is in blocks too small for each order, 0 to 1.
    pub fn unusable_index(&self) -> String {
        self.line_per_zone(|w, zone, order| {
            let index = zone.contig_info(order).unusable_index(order);
            write!(w, "{}.{:03} ", index / 1000, index % 1000)
        })
    }

    /// `extfrag/extfrag_index`: whether a request of each order would fail for lack of memory (0) or because it is in
    /// pieces (1); −1 where it would not fail.
    pub fn extfrag_index(&self) -> String {
        self.line_per_zone(|w, zone, order| {
            let index = zone.contig_info(order).fragmentation_index(order);
            // The kernel prints quotient and remainder, so a small negative index loses its sign's place: ` 0.-62 `.
            write!(w, "{:>2}.{:03} ", index / 1000, index % 1000)
        })
    }

    /// A line for each populated zone, a column for each order.
    fn line_per_zone(&self, column: impl Fn(&mut String, &Zone, Order) -> fmt::Result) -> String {
        text(|w| {
            for node in &self.nodes {
                for zone in self.populated_zones(node) {
                    write!(w, "Node {}, zone {:>8} ", node.id.index(), zone.kind.name())?;
                    Order::all().try_for_each(|order| column(w, zone, order))?;
                    writeln!(w)?;
                }
            }
            Ok(())
        })
    }

    /// A node's zones that have memory, lowest first.
    fn populated_zones(&self, node: &Node) -> impl Iterator<Item = &Zone> {
        node.zones.iter().map(|z| self.zone(*z)).filter(|z| z.present > 0)
    }
}

/// What `fill` writes.
fn text(fill: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut out = String::new();
    fill(&mut out).expect("a String takes any text");
    out
}
