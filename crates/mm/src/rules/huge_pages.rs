//! Rules of what a fault asks for when it wants a huge page, for hosts that have processes.

use super::rule::{mechanism, variants};

variants! {
    /// What a fault that wants a huge page asks for, by what administrators have set (`defrag`) and the program advises.
    pub enum HugeRequests {
        /// Of its own node alone, once: reclaim and compaction, or neither. kswapd is never asked.
        #[since("up to 4.5")]
        OnceDirect,
        /// The same, and there is `defer`: only kswapd is asked.
        #[since("4.6–4.7")]
        OnceOrDeferred,
        /// Once: of any node where it may reclaim, for which a program that has asked for huge pages waits longer, else of its own
        /// alone; there is `defer+madvise`.
        #[since("4.20-rc3")]
        OnceAnyNode,
        /// Lightly of its own node first, then of any, for which a program that has asked for huge pages waits longer; there is
        /// `defer+madvise`.
        #[since("5.4")]
        LocalThenAny,
    }
}

mechanism! {
    /// A page fault asks for a huge page.
    pub struct HugePageRules for "huge_pages" {
        /// What a fault asks for.
        #[rule(section = "3.8")]
        pub requests: HugeRequests,
        /// Unless administrators say otherwise only programs that have asked for huge pages wait for them: `defrag` is
        /// `madvise`; before, `always`.
        #[rule(since = "4.6", section = "3.8")]
        pub waits_where_advised: bool,
    }
}
