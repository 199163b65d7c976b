//! The pattern that is no list of steps but a real program: a part of a kernel is built on little
//! memory. In the laboratory the workload `kbuild-guest` stands for it.
//!
//! Every guest, whatever its kernel, builds the same sources with the same compiler. None of them
//! are in the project: the recorder takes them from the host.

use serde::{Deserialize, Serialize};

/// The origin of a guest's build, in `recording.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltFrom {
    /// Version of the sources.
    pub sources: String,
    /// Release of the headers.
    pub headers: String,
    /// Version of the compiler.
    pub compiler: String,
}

/// The pattern's name, and what it does.
pub const NAME: &str = "build";
pub const WHAT: &str = "24 files of a kernel are built by six compilers at a time, on 620 MiB of which a file in \
                        memory holds 260";
/// The laboratory's machine and workload.
pub const MACHINE: &str = "guest-620m";
pub const WORKLOAD: &str = "kbuild-guest";

/// MiB of memory, of the file in memory, and of swap.
pub const MEMORY_MIB: u32 = 620;
pub const HELD_MIB: u32 = 260;
pub const SWAP_MIB: u32 = 512;
/// Compilers at a time (`make -j`).
pub const JOBS: u32 = 6;
/// ms between two samples.
pub const SAMPLE_MS: u64 = 250;
/// Counting begins and ends here.
pub const PHASES: [&str; 2] = ["start", "end"];

/// The files that are compiled, as a kernel's tree has them: one in 80 of those that Debian's 6.1
/// has in these directories.
pub const FILES: [&str; 24] = [
    "block/blk-integrity.c",
    "kernel/relay.c",
    "kernel/user.c",
    "lib/strnlen_user.c",
    "mm/page_io.c",
    "fs/inode.c",
    "mm/compaction.c",
    "kernel/fork.c",
    "mm/swapfile.c",
    "mm/memory.c",
    "kernel/stacktrace.c",
    "net/core/dev_ioctl.c",
    "mm/mmu_gather.c",
    "kernel/notifier.c",
    "block/blk-mq-sched.c",
    "block/bfq-wf2q.c",
    "lib/iomap.c",
    "lib/asn1_encoder.c",
    "fs/char_dev.c",
    "net/core/sock_diag.c",
    "lib/kstrtox.c",
    "lib/btree.c",
    "kernel/time/clocksource.c",
    "block/blk-zoned.c",
];

/// Files by which each seed's list begins later than that of the seed before.
const STEP: u64 = 5;

/// The files in the order of a seed: the list is turned, and 24 seeds turn it differently.
pub fn order(seed: u64) -> impl Iterator<Item = &'static str> {
    let all = FILES.len() as u64;
    let first = (seed % all + all - 1) * STEP % all;
    FILES.iter().cycle().skip(first as usize).take(FILES.len()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_seed_builds_all_files_and_begins_with_another() {
        assert_eq!(order(1).next(), Some(FILES[0]));
        assert_eq!(order(2).next(), Some(FILES[5]));
        let firsts: BTreeSet<_> = (0..24).map(|seed| order(seed).next()).collect();
        assert_eq!(firsts.len(), 24);
        for seed in [0, 1, 23, u64::MAX] {
            assert_eq!(order(seed).collect::<BTreeSet<_>>(), FILES.into_iter().collect());
        }
    }
}
