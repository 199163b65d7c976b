//! What there is. Nothing here names the [`Kernel`](crate::kernel::Kernel) or waits for anything.

pub(crate) mod daemons;
pub(crate) mod khugepaged;
