//! Limits on the amount and the age of dirty memory: `vm.dirty_*`.
//!
//! A limit is either a part of the memory that could be dirty or a number of bytes: setting one
//! makes the other read 0. Writeback belongs to the host. Source: `mm/page-writeback.c` of 6.1.

use super::{ALWAYS, Decides, NO_EFFECT, Setting, Sysctl};
use crate::state::Limit;

macro_rules! dirty {
    ($($SYSCTL:ident = $name:literal, $max:expr, $get:expr, $set:expr, $summary:literal;)*) => {
        $(pub(super) static $SYSCTL: Sysctl = Sysctl {
            name: concat!("vm.dirty_", $name),
            summary: $summary,
            setting: Some(Setting { get: $get, set: $set, computed: false, decides: Decides::Everything }),
            exists: ALWAYS,
            range: |_| (0, $max),
            words: None,
            effect: NO_EFFECT,
        };)*
    };
}

dirty! {
    BACKGROUND_BYTES = "background_bytes", u32::MAX, |t| t.dirty.background.bytes, |t, n| t.dirty.background.bytes = n,
        "dirty bytes above which pages are written in the background; 0 if the ratio applies";
    BACKGROUND_RATIO = "background_ratio", 100,
        |t| t.dirty.background.ratio(), |t, n| t.dirty.background = Limit::of_ratio(n),
        "dirty per cent of the memory that could be dirty above which it is written in the background";
    BYTES = "bytes", u32::MAX, |t| t.dirty.limit.bytes, |t, n| t.dirty.limit.bytes = n,
        "bytes that may be dirty; 0 if the ratio applies";
    EXPIRE = "expire_centisecs", u32::MAX, |t| t.dirty.expire_centisecs, |t, n| t.dirty.expire_centisecs = n,
        "age at which a dirty page is old";
    RATIO = "ratio", 100, |t| t.dirty.limit.ratio(), |t, n| t.dirty.limit = Limit::of_ratio(n),
        "per cent that may be dirty of the memory that could be";
    WRITEBACK = "writeback_centisecs", u32::MAX,
        |t| t.dirty.writeback_centisecs, |t, n| t.dirty.writeback_centisecs = n,
        "interval between checks for old dirty pages; 0 for no checks";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::machine;

    #[test]
    fn bytes_take_the_place_of_a_ratio_and_a_ratio_that_of_bytes() {
        let mut m = machine(4);
        assert_eq!((m.tunables().dirty.limit.pages(1000), m.tunables().dirty.background.pages(1000)), (200, 100));
        m.sysctl_write("dirty_bytes", "8193").expect("valid");
        assert_eq!(m.tunables().dirty.limit.pages(1000), 3, "begun pages count");
        let read = |m: &crate::Memory| [&BYTES, &RATIO].map(|sysctl| m.sysctl_read(sysctl));
        assert_eq!(read(&m), [Some(8193), Some(0)]);
        m.sysctl_write("vm.dirty_ratio", "40").expect("valid");
        assert_eq!(read(&m), [Some(0), Some(40)]);
        assert!(m.sysctl_write("dirty_ratio", "101").is_err());
    }
}
