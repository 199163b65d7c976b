//! The fields that each kernel lists, and their order.
//!
//! A format is a kernel's own text: `kernels/VERSION`, read by `kernels/read` from a kernel booted
//! under emulation. Its names give the fields. Its numbers are unused, except those of zones
//! without memory, which are the same on every machine. A further kernel needs a folder there and
//! an entry in [`FORMATS`].

use crate::{PageTypeInfo, VmStat, ZoneInfo};
use kontig_mm::Profile;

/// The texts of one kernel.
pub(super) struct Format {
    kernel: &'static str,
    vmstat: &'static str,
    zoneinfo: &'static str,
    pagetypeinfo: &'static str,
}

macro_rules! format {
    ($version:literal) => {
        format!($version, types as $version)
    };
    ($version:literal, types as $of_types:literal) => {
        Format {
            kernel: $version,
            vmstat: include_str!(concat!("../../kernels/", $version, "/vmstat")),
            zoneinfo: include_str!(concat!("../../kernels/", $version, "/zoneinfo")),
            pagetypeinfo: include_str!(concat!("../../kernels/", $of_types, "/pagetypeinfo")),
        }
    };
}

/// The kernels whose texts are known, oldest first: Debian's cloud images of 5.10.0-46, 6.1.0-56
/// (6.1.192), 6.12.107, 7.2.12 and 7.3.4. No older one could be booted: for 3.13, 4.4 with
/// kcompactd and 4.6 the names in `vmstat` and `zoneinfo`, and 3.13's migrate types, are from their
/// sources.
pub(super) const FORMATS: [Format; 8] = [
    format!("3.13"),
    format!("4.4", types as "5.10"),
    format!("4.6", types as "5.10"),
    format!("5.10"),
    format!("6.1"),
    format!("6.12"),
    format!("7.2"),
    format!("7.3"),
];

impl Format {
    /// The format of a profile's kernel: the oldest known kernel that is not older. A profile that
    /// is not named after a version gets the newest.
    pub(super) fn of(profile: &Profile) -> &'static Format {
        let newest = &FORMATS[FORMATS.len() - 1];
        let Some(version) = version(&profile.kernel) else { return newest };
        FORMATS.iter().find(|f| self::version(f.kernel) >= Some(version)).unwrap_or(newest)
    }

    /// The kernel's `/proc/vmstat`, parsed.
    pub(super) fn vmstat(&self) -> VmStat {
        VmStat::parse("vmstat", self.vmstat).expect("a kernel's own text")
    }

    /// The counter names in `/proc/vmstat`.
    pub(super) fn counter_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.vmstat.lines().filter_map(|line| line.split(' ').next())
    }

    /// The kernel's `/proc/zoneinfo`, parsed.
    pub(super) fn zoneinfo(&self) -> ZoneInfo {
        ZoneInfo::parse("zoneinfo", self.zoneinfo).expect("a kernel's own text")
    }

    /// The kernel's `/proc/pagetypeinfo`, parsed.
    pub(super) fn pagetypeinfo(&self) -> PageTypeInfo {
        PageTypeInfo::parse("pagetypeinfo", self.pagetypeinfo).expect("a kernel's own text")
    }
}

/// The names of all counters in `/proc/vmstat` of any of these kernels; those of several come
/// several times.
pub fn counter_names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().flat_map(Format::counter_names)
}

/// The version a profile is named after: `6.1` for `6.1-defrag`.
pub fn version(name: &str) -> Option<(u32, u32)> {
    let (major, rest) = name.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest[..end].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_mm::pagetypeinfo::named;
    use kontig_mm::{MigrateType, VmEvent, ZoneType};

    #[test]
    fn a_profile_has_the_format_of_its_own_kernel_or_of_the_next_one_known() {
        let of = |name: &str| {
            let profile = Profile { kernel: name.into(), ..kontig_profiles::linux("6.1") };
            Format::of(&profile).kernel
        };
        assert_eq!(of("3.13"), "3.13");
        assert_eq!(["4.4-kcompactd", "4.6"].map(of), ["4.4", "4.6"]);
        assert_eq!(["5.6", "5.9", "5.10"].map(of), ["5.10"; 3]);
        assert_eq!(["6.1", "6.1-mine", "6.12"].map(of), ["6.1", "6.1", "6.12"]);
        assert_eq!(["6.15", "7.2"].map(of), ["7.2"; 2]);
        assert_eq!(["7.3", "9.0", "mine"].map(of), ["7.3"; 3]);
    }

    #[test]
    fn every_event_the_engine_counts_is_listed_once_by_every_kernel() {
        for format in &FORMATS {
            let vmstat = format.vmstat();
            // Nothing is ever allocated from Device, and 5.10 does not count it. Later kernels
            // count once some events that 4.6 counts by zone, and the other way round; events in
            // neither list are not listed.
            let by_zone = |name: &str| {
                let of = ["pgrefill", "pgsteal_kswapd", "pgsteal_direct", "pgscan_kswapd", "pgscan_direct"];
                of.iter()
                    .any(|of| name.strip_prefix(of).is_some_and(|zone| zone.starts_with('_') && zone != "_throttle"))
            };
            let not_in_4_6 = |name: &str| {
                let starts = ["oom_kill", "allocstall_", "pgskip_", "pglazyfree", "compact_daemon_"];
                let ends = ["_anon", "_file", "pgrefill", "pgsteal_kswapd", "pgscan_kswapd", "_direct"];
                let has = ["compact_daemon_wake", "pglazyfreed"].contains(&name);
                !has && (starts.iter().any(|s| name.starts_with(s)) || ends.iter().any(|e| name.ends_with(e)))
            };
            // The reasons of khugepaged are counted since 5.17, its own reclaim since 6.2;
            // reclaim by commands is not yet in 6.12, nor is node reclaim's success in 6.1.
            let too_new = |name: &str| {
                name.starts_with("thp_scan_exceed_") && ["3.13", "4.4", "4.6", "5.10"].contains(&format.kernel)
                    || (name.ends_with("_khugepaged") || name == "zone_reclaim_success")
                        && ["3.13", "4.4", "4.6", "5.10", "6.1"].contains(&format.kernel)
                    || name.ends_with("_proactive")
                        && ["3.13", "4.4", "4.6", "5.10", "6.1", "6.12"].contains(&format.kernel)
            };
            // Split huge pages were one counter, `thp_split`, up to 4.4.
            let not_in_4_4 = |name: &str| ["pglazyfreed", "thp_split_page", "thp_split_pmd"].contains(&name);
            let of_its_time = |name: &str| match format.kernel {
                "3.13" => !not_in_4_6(name) && !not_in_4_4(name) && name != "compact_daemon_wake",
                "4.4" => !not_in_4_6(name) && !not_in_4_4(name),
                "4.6" => !not_in_4_6(name),
                _ => !by_zone(name),
            };
            let lists = |name: &str| of_its_time(name) && !too_new(name);
            for e in VmEvent::ALL.iter().filter(|e| !e.name().ends_with("_device")) {
                let listed = vmstat.0.names().filter(|n| *n == e.name()).count();
                assert_eq!(listed, usize::from(lists(e.name())), "{} {}", format.kernel, e.name());
            }
        }
    }

    #[test]
    fn every_format_shows_zones_with_and_without_memory_and_all_types() {
        for format in &FORMATS {
            let zoneinfo = format.zoneinfo();
            assert!(zoneinfo.zones.iter().any(|z| z.populated.is_some()), "{}", format.kernel);
            // Up to 4.11 zones without memory are not listed, and up to 4.7 nodes have no counters.
            let is_old = ["3.13", "4.4", "4.6"].contains(&format.kernel);
            for kind in ZoneType::ALL {
                let empty = zoneinfo.zones.iter().find(|z| z.populated.is_none() && z.at.zone == kind.name());
                assert_eq!(empty.is_none(), is_old, "{} {}", format.kernel, kind.name());
            }
            assert_eq!(zoneinfo.zones.iter().all(|z| z.node_stats.is_none()), is_old, "{}", format.kernel);
            assert_eq!(zoneinfo.to_string(), format.zoneinfo, "{}", format.kernel);
            let pagetypeinfo = format.pagetypeinfo();
            for t in MigrateType::ALL {
                let listed = pagetypeinfo.nodes[0].blocks[0].types.iter().any(|name| named(name) == Some(t));
                assert!(listed, "{} {}", format.kernel, t.name());
            }
            if format.kernel == "3.13" {
                let order = ["Unmovable", "Reclaimable", "Movable", "Reserve", "Isolate"];
                assert_eq!(pagetypeinfo.nodes[0].blocks[0].types, order);
            }
        }
    }
}
