//! Rules of what a process takes of the kernel, for hosts that have processes.

use super::rule::{mechanism, variants};

mechanism! {
    /// A process or a thread is made.
    pub struct ProcessRules for "processes" {
        /// The blocks of a stack in the kernel.
        #[rule(section = "11.5")]
        pub stack: Stack,
    }
}

variants! {
    /// The blocks of a stack in the kernel.
    pub enum Stack {
        /// One of order 1. Up to 3.14.
        Order1,
        /// One of order 2.
        Order2,
        /// Four single pages (`CONFIG_VMAP_STACK`). Since 4.9.
        FourPages,
    }
}
