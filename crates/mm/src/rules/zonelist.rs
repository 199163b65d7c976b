//! Rules of the walk over a request's zones.

use super::rule::mechanism;

mechanism! {
    /// A request looks at its zones one after the other.
    pub struct ZonelistRules for "zonelist" {
        /// A request first goes round the zones of its node: each gives so many pages as it has between its low and its
        /// high mark, then the next, so that pages of all zones grow equally old.
        #[rule(since = "3.12–4.7", section = "3.4")]
        pub goes_round: bool,
        /// A request that prefers the Normal zone takes a lower one rather than split a foreign pageblock.
        #[rule(since = "5.0", section = "3.3")]
        pub avoids_fragmentation: bool,
        /// Of nodes equally near, a list prefers the one that fewer lists built before it have in that place; before, the one
        /// whose last such list was the shorter from there on.
        #[rule(since = "5.16", section = "1.5")]
        pub loads_add_up: bool,
        /// Nodes whose kswapd is at work are looked at only when no other node has a page.
        #[rule(since = "6.17", section = "3.4")]
        pub busy_nodes_last: bool,
    }
}
