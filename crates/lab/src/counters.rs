//! The names of `/proc/vmstat` counters that formulas may be of.
//!
//! They are those of the kernels whose texts are known, and those that older kernels had and published tables are made
//! of. Whether the simulated machine counts one shows in its runs.

use crate::names::nearest;

/// Counters that were dropped or renamed before the oldest kernel whose text is known.
const OLDER: &[&str] = &["kswapd_skip_congestion_wait", "pgrescued", "thp_split"];

/// Whether any kernel has a counter of this name.
pub(crate) fn is_known(name: &str) -> bool {
    OLDER.contains(&name) || kontig_procfs::VmStat::of_all_kernels().any(|known| known == name)
}

/// What to say of one that none has.
pub(crate) fn unknown(name: &str) -> String {
    let known: Vec<&str> = kontig_procfs::VmStat::of_all_kernels().chain(OLDER.iter().copied()).collect();
    nearest("counter", name, &known)
        .unwrap_or_else(|| format!("unknown counter '{name}': no kernel has it in /proc/vmstat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_of_the_engine_and_of_old_tables_is_known() {
        for event in kontig_mm::VmEvent::ALL {
            assert!(is_known(event.name()), "{}", event.name());
        }
        assert!(is_known("pswpin") && is_known("workingset_refault_file") && is_known("pginodesteal"));
        assert!(is_known("allocstall") && is_known("pgscan_direct_dma32"));
        let newer: Vec<&str> = kontig_procfs::VmStat::of_all_kernels().collect();
        assert_eq!(OLDER.iter().find(|name| newer.contains(name)), None, "it is no longer only an old one");
    }

    #[test]
    fn an_unknown_counter_is_answered_with_the_nearest() {
        assert_eq!(unknown("pswapin"), "unknown counter 'pswapin': did you mean 'pswpin'?");
    }
}
