//! Rules of the walk over a request's zones.

use super::rule::mechanism;

mechanism! {
    /// A request looks at its zones one after the other.
    pub struct ZonelistRules for "zonelist" {
        /// Requests first go round the zones of their node: each gives as many pages as lie between
        /// its low and high marks, then the next, so that the pages of all zones age alike. From
        /// 3.12 to 4.7.
        #[rule(section = "3.4")]
        pub goes_round: bool,
        /// The shares that zones give in their turn are filled up at the beginning of the slow
        /// path, which a request enters when all are used up, too; later, by the walk itself, which
        /// then goes on.
        #[rule(section = "3.7")]
        pub fills_up_on_slow_path: bool,
        /// Requests bound to one node that neither retry nor warn go round, too, and count. Where a
        /// used-up share fails them at once (3.13 before 3.13.7), they get no page of a free node;
        /// the stable series of 3.13 exempts them.
        #[rule(section = "3.4")]
        pub bound_go_round: bool,
        /// A request that prefers the Normal zone takes from a lower one rather than split a
        /// foreign pageblock. Since 5.2: 5.0 has it and does not use it.
        #[rule(section = "3.3")]
        pub avoids_fragmentation: bool,
        /// Among equally near nodes, a list prefers the one that fewer earlier lists have in that
        /// place; before, the one whose last such list was shorter from there on. Since 5.16.
        #[rule(section = "1.5")]
        pub loads_add_up: bool,
        /// Nodes whose kswapd is at work are tried only when no other node has a page. Since 6.17.
        #[rule(section = "3.4")]
        pub busy_nodes_last: bool,
    }
}
