//! Request of a trace: its migratetype, and its rights beyond taking free pages.
//!
//! The flags belong to the trace format. They are translated to gfp flags here for the engine, and
//! in the recorder's module for the kernel.

use kontig_mm::{Gfp, MigrateType};
use std::fmt;

/// Flags of an allocation's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Request(u16);

/// Mask of the migratetype.
const TYPE: u16 = 3;
/// Zone bit of other traces ([`super::lru`]), unused here.
const ZONE: u16 = 256;
/// First value above all flags.
const END: u16 = 16384;

impl Request {
    /// Memory that stays where it is.
    pub const UNMOVABLE: Request = Request(0);
    /// Memory of a cache with a shrinker.
    pub const RECLAIMABLE: Request = Request(1);
    /// Memory that can be migrated.
    pub const MOVABLE: Request = Request(2);
    /// `__GFP_KSWAPD_RECLAIM`: may wake kswapd.
    pub const KSWAPD: Request = Request(4);
    /// May reclaim and compact itself, with IO and FS.
    pub const DIRECT: Request = Request(8);
    /// `__GFP_HIGH`: may use part of the reserves.
    pub const HIGH: Request = Request(16);
    /// Not a right: the page is made migratable by its owner.
    pub const OWNED: Request = Request(32);
    /// Neither NORETRY nor NOMEMALLOC: tries again.
    pub const RETRY: Request = Request(64);
    /// Marked atomic, on kernels that have such a mark; it means nothing on the others
    /// ([`Profile::has_atomic_mark`](kontig_mm::Profile::has_atomic_mark)).
    pub const ATOMIC: Request = Request(128);
    /// `__GFP_RETRY_MAYFAIL`: a costly request retries as well, and fails in the end.
    pub const MAYFAIL: Request = Request(512);
    /// `__GFP_NOFAIL`: retries until there is a block.
    pub const NOFAIL: Request = Request(1024);
    /// Without `__GFP_FS`: may not enter a file system.
    pub const NOFS: Request = Request(2048);
    /// Without `__GFP_IO` and `__GFP_FS`.
    pub const NOIO: Request = Request(4096);
    /// Bound to the node by a nodemask, as by a process's memory policy, not by `__GFP_THISNODE`.
    pub const POLICY: Request = Request(8192);

    /// Names of the types.
    pub const TYPES: [(Request, &str); 3] =
        [(Request::UNMOVABLE, "unmovable"), (Request::RECLAIMABLE, "reclaimable"), (Request::MOVABLE, "movable")];
    /// Names of the rights.
    pub const RIGHTS: [(Request, &str); 11] = [
        (Request::KSWAPD, "kswapd"),
        (Request::DIRECT, "direct"),
        (Request::HIGH, "high"),
        (Request::OWNED, "owned"),
        (Request::RETRY, "retry"),
        (Request::ATOMIC, "atomic"),
        (Request::MAYFAIL, "mayfail"),
        (Request::NOFAIL, "nofail"),
        (Request::NOFS, "nofs"),
        (Request::NOIO, "noio"),
        (Request::POLICY, "policy"),
    ];

    /// Decodes recorded flags; `None` if they are invalid.
    pub fn from_flags(flags: u16) -> Option<Request> {
        (flags & TYPE != TYPE && flags & ZONE == 0 && flags < END).then_some(Request(flags))
    }

    /// The flags to record.
    pub const fn flags(self) -> u16 {
        self.0
    }

    /// A request of this type that may only take free pages.
    pub const fn of(t: MigrateType) -> Request {
        match t {
            MigrateType::Movable => Request::MOVABLE,
            MigrateType::Reclaimable => Request::RECLAIMABLE,
            MigrateType::Unmovable | MigrateType::HighAtomic => Request::UNMOVABLE,
        }
    }

    /// The request with these flags added.
    #[must_use]
    pub const fn with(self, o: Request) -> Request {
        Request(self.0 | o.0)
    }

    /// The request with these flags removed.
    #[must_use]
    pub const fn without(self, o: Request) -> Request {
        Request(self.0 & !o.0)
    }

    /// Whether all of these flags are set.
    #[inline(always)]
    pub const fn has(self, o: Request) -> bool {
        self.0 & o.0 == o.0
    }

    /// Advice, if no kernel accepts this combination.
    pub const fn contradiction(self) -> Option<&'static str> {
        if self.has(Request::NOFAIL) && !self.has(Request::DIRECT) {
            return Some("'nofail' without 'direct' would never end: write both");
        }
        if self.has(Request::MAYFAIL) && self.has(Request::NOFAIL) {
            return Some("'mayfail' and 'nofail' contradict each other: leave one out");
        }
        None
    }

    /// The same to the allocator.
    #[inline(always)]
    pub fn gfp(self) -> Gfp {
        // A replay asks for every operation: it looks up what is worked out once.
        static ALL: [Gfp; END as usize] = {
            let mut all = [Gfp::NONE; END as usize];
            let mut flags = 0;
            while flags < all.len() {
                all[flags] = Request(flags as u16).worked_out();
                flags += 1;
            }
            all
        };
        ALL[self.0 as usize]
    }

    const fn worked_out(self) -> Gfp {
        let mut g = match self.0 & TYPE {
            0 => Gfp::NOWARN,
            1 => Gfp::NOWARN.with(Gfp::RECLAIMABLE),
            _ => Gfp::NOWARN.with(Gfp::MOVABLE),
        };
        if !self.has(Request::POLICY) {
            g = g.with(Gfp::THISNODE);
        }
        if !self.has(Request::RETRY) && !self.has(Request::MAYFAIL) && !self.has(Request::NOFAIL) {
            g = g.with(Gfp::NORETRY);
            if !self.has(Request::HIGH) {
                g = g.with(Gfp::NOMEMALLOC);
            }
        }
        if self.has(Request::KSWAPD) {
            g = g.with(Gfp::KSWAPD_RECLAIM);
        }
        if self.has(Request::DIRECT) {
            g = g.with(Gfp::DIRECT_RECLAIM);
            if !self.has(Request::NOIO) {
                g = g.with(Gfp::IO);
                if !self.has(Request::NOFS) {
                    g = g.with(Gfp::FS);
                }
            }
            if g.has(Gfp::MOVABLE) {
                // As a process's own memory is asked for.
                g = g.with(Gfp::HIGHMEM).with(Gfp::HARDWALL);
            }
        }
        if self.has(Request::HIGH) {
            g = g.with(Gfp::HIGH);
        }
        if self.has(Request::ATOMIC) {
            g = g.with(Gfp::ATOMIC_MARK).without(Gfp::NOMEMALLOC);
        }
        if self.has(Request::MAYFAIL) {
            g = g.with(Gfp::RETRY_MAYFAIL);
        }
        if self.has(Request::NOFAIL) {
            g = g.with(Gfp::NOFAIL);
        }
        g
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_type = Request::TYPES.iter().find(|(t, _)| t.0 == self.0 & TYPE);
        f.write_str(of_type.map_or("", |(_, name)| name))?;
        Request::RIGHTS.iter().filter(|(r, _)| self.has(*r)).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_add_up() {
        let quiet = Request::UNMOVABLE.gfp();
        assert_eq!(quiet, Gfp::THISNODE | Gfp::NOWARN | Gfp::NORETRY | Gfp::NOMEMALLOC);
        let fault = Request::MOVABLE.with(Request::KSWAPD).with(Request::DIRECT).with(Request::RETRY).gfp();
        assert_eq!(fault, Gfp::HIGHUSER_MOVABLE | Gfp::THISNODE | Gfp::NOWARN);
        let atomic = Request::UNMOVABLE.with(Request::HIGH).gfp();
        assert!(atomic.has(Gfp::HIGH | Gfp::NORETRY) && !atomic.has(Gfp::NOMEMALLOC));
        let bound = Request::UNMOVABLE.with(Request::DIRECT);
        assert_eq!(bound.with(Request::NOFS).gfp(), bound.gfp().without(Gfp::FS));
        assert_eq!(bound.with(Request::NOIO).gfp(), bound.gfp().without(Gfp::IO | Gfp::FS));
        assert_eq!(bound.with(Request::POLICY).gfp(), bound.gfp().without(Gfp::THISNODE));
        let again = bound.gfp().without(Gfp::NORETRY | Gfp::NOMEMALLOC);
        assert_eq!(bound.with(Request::MAYFAIL).gfp(), again | Gfp::RETRY_MAYFAIL);
    }
}
