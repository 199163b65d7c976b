//! Rules of the walk over a request's zones.

use super::rule::mechanism;

mechanism! {
    /// A request looks at its zones one after the other.
    pub struct ZonelistRules for "zonelist" {
        /// Nodes whose kswapd is at work are looked at only when no other node has a page.
        #[rule(since = "6.17", section = "3.4")]
        pub busy_nodes_last: bool,
    }
}
