//! Rules of memory control groups.

use super::rule::{mechanism, variants};

mechanism! {
    /// Pages are charged to the group of the task that asks for them, where there are groups.
    pub struct GroupRules for "groups" {
        /// The kernel's memory control groups, as far as they are known.
        #[rule(section = "4.11")]
        pub charges: GroupCharges,
        /// Pages scanned and reclaimed for a limit count for the whole machine, too
        /// (`pgscan_direct`, `pgsteal_direct`, `pgrefill`).
        #[rule(section = "4.11.3")]
        pub limits_count_for_machine: bool,
    }
}

variants! {
    /// How memory control groups are charged.
    pub enum GroupCharges {
        /// By rules that are not known: there are no groups here.
        Unmodelled,
        /// In batches, of which each CPU keeps what is left over for one group at a time.
        OneStockACpu,
        /// In batches, of which each CPU keeps what is left over for up to seven groups.
        SevenStocksACpu,
    }
}
