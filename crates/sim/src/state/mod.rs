//! State of the machine. Nothing here uses the [`Kernel`](crate::kernel::Kernel) or waits for
//! anything.

pub(crate) mod daemons;
pub(crate) mod entry;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod khugepaged;
pub(crate) mod mapcount;
pub(crate) mod object;
pub(crate) mod process;
pub(crate) mod swap;
