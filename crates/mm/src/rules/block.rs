//! Rules of the block layer, for hosts that have disks.

use super::rule::mechanism;

mechanism! {
    /// A task has a disk read or write.
    pub struct BlockRules for "block" {
        /// Requests that a plug holds back: 16 up to 5.15, then 32.
        #[rule(section = "11.7")]
        pub plugged_requests: u32,
        /// A plug goes when another request follows one of 128 KiB. Since 4.10.
        #[rule(section = "11.7")]
        pub large_request_unplugs: bool,
        /// Reads go on from where reads ended, and writes from where writes did; before, a change
        /// between them began with the oldest request. Since 5.14.
        #[rule(section = "11.7")]
        pub reads_and_writes_keep_places: bool,
    }
}
