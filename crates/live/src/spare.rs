//! Memory that this process may take for a while: what the host has available, and what its control
//! groups allow.

use crate::cgroup::{Limit, Limits};
use crate::error::ReadError;
use crate::roots::Roots;
use kontig_procfs::MemInfo;
use kontig_text::size;
use std::fmt;

/// Memory that this process may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spare {
    bytes: u64,
    /// The limit, where a control group has less than the host.
    pub(crate) limit: Option<Limit>,
}

/// More memory was asked for than this process may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooMuch {
    wanted: u64,
    spare: Spare,
}

impl Spare {
    /// Of `MemAvailable`, `left` bytes stay for everybody else.
    ///
    /// # Errors
    /// If `/proc/meminfo` cannot be read.
    pub(crate) fn read(roots: &Roots, left: u64) -> Result<Spare, ReadError> {
        let info = roots.parse_proc("meminfo", MemInfo::parse)?;
        let available = info.kb("MemAvailable").unwrap_or(0) * 1024;
        let of_host = Spare { bytes: available.saturating_sub(left), limit: None };
        let of_group = |limit: Limit| Spare { bytes: limit.blocks_bytes(), limit: Some(limit) };
        let group = Limits::read(roots).memory.map(of_group);
        Ok(group.filter(|group| group.bytes < of_host.bytes).unwrap_or(of_host))
    }

    /// Refuses more than there is.
    pub(crate) fn allows(&self, bytes: u64) -> Result<(), TooMuch> {
        if bytes <= self.bytes { Ok(()) } else { Err(TooMuch { wanted: bytes, spare: self.clone() }) }
    }
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, spare) = (size(self.wanted), size(self.spare.bytes));
        match &self.spare.limit {
            None => write!(f, "{wanted} are asked for, {spare} may be taken of what is available")?,
            Some(limit) => write!(
                f,
                "{wanted} are asked for, {spare} may be taken under the limit of control group {} ({} is {})",
                limit.group,
                limit.file.display(),
                size(limit.limit_bytes)
            )?,
        }
        f.write_str(": ask for less with --gib")
    }
}

impl std::error::Error for TooMuch {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn a_control_group_may_allow_less_than_the_host_has() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(roots.proc("meminfo"), "MemAvailable:    4194304 kB\n");
        let refused = |bytes: u64| {
            let spare = Spare::read(&roots, 1 << 30).expect("it is there");
            spare.allows(bytes).err().map(|e| e.to_string())
        };
        assert_eq!(refused(3 << 30), None);
        let said = "3.5 GiB are asked for, 3 GiB may be taken of what is available: ask for less with --gib";
        assert_eq!(refused(7 << 29), Some(said.into()));
        write(roots.proc("self/mountinfo"), "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write(roots.proc("self/cgroup"), "0::/small\n");
        write(roots.sys("fs/cgroup/small/memory.max"), "536870912\n");
        write(roots.sys("fs/cgroup/small/memory.current"), "8388608\n");
        let said = refused(1 << 30).expect("it is too much");
        let limit = roots.sys("fs/cgroup/small/memory.max");
        assert!(
            said.ends_with(&format!("control group /small ({} is 512 MiB): ask for less with --gib", limit.display())),
            "{said}"
        );
        assert_eq!(refused(400 << 20), None);
    }
}
