//! CPU time that this process and its children used.

use std::mem::MaybeUninit;

/// Seconds of CPU that this process and the children it has waited for used.
pub(crate) fn own_and_children_s() -> Option<f64> {
    let all = |of: libc::rusage| seconds(of.ru_utime) + seconds(of.ru_stime);
    Some(all(usage(libc::RUSAGE_SELF)?) + all(usage(libc::RUSAGE_CHILDREN)?))
}

/// Seconds that the children spent in their own code.
pub(crate) fn children_user_s() -> Option<f64> {
    usage(libc::RUSAGE_CHILDREN).map(|usage| seconds(usage.ru_utime))
}

fn usage(who: libc::c_int) -> Option<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the call fills the structure where it returns 0.
    unsafe { (libc::getrusage(who, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
