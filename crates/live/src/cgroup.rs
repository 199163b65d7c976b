//! Memory limits of this process: the tightest one of its control group and all ancestors, version
//! 1 and 2.
//!
//! A group's clean cache counts as room: the kernel drops it before it refuses anything.
//! `memory.high` counts as a limit, since a task above it is slowed down until hardly anything goes
//! on. Pages of a pool (hugetlb) are limited by a controller of their own. Groups that a container
//! does not show are unknown.

use crate::roots::{self, Roots};
use kontig_text::size;
use serde::Serialize;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// A limit of a control group, and the memory charged against it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Limit {
    /// The group's path below the mounted one.
    pub group: String,
    pub file: PathBuf,
    pub limit_bytes: u64,
    /// Charged to the group and the groups in it now, bytes.
    pub used_bytes: u64,
    /// Clean pages of files among them, which go when the limit is reached, bytes.
    pub cache_bytes: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "control group {} ({} is {})", self.group, self.file.display(), size(self.limit_bytes))
    }
}

/// The limits of this process's groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// The tightest limit of its memory.
    pub memory: Option<Limit>,
    /// The tightest limit for pages of pools, by the size of a page.
    pub pools: Vec<(u64, Limit)>,
}

impl Limit {
    /// Bytes that the group may have beyond those it has.
    pub fn room_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes.saturating_sub(self.cache_bytes))
    }

    /// The most of that a program can have in blocks.
    pub fn blocks_bytes(&self) -> u64 {
        let room = u128::from(self.room_bytes().saturating_sub(PROGRAM_BYTES));
        u64::try_from(room * 512 / 513).unwrap_or(u64::MAX)
    }
}

/// Bytes for a program's own code, heap and stacks. A program that takes more can ask for it as a
/// need of its own.
const PROGRAM_BYTES: u64 = 16 << 20;

/// Bytes charged to a group beside `blocks_bytes`: page tables, 4 KiB for 2 MiB even where a huge
/// page is mapped (its table is kept for a split), and the program itself.
pub fn beside_blocks(blocks_bytes: u64) -> u64 {
    PROGRAM_BYTES + blocks_bytes.div_ceil(512)
}

impl Limits {
    /// Reads them. A kernel without control groups has none, and a file that is missing limits
    /// nothing.
    pub fn read(roots: &Roots) -> Limits {
        let mut limits = Limits::default();
        let groups = roots.read_proc("self/cgroup").unwrap_or_default();
        let mounts = roots.read_proc("self/mountinfo").unwrap_or_default();
        for (controllers, path) in groups.lines().filter_map(membership) {
            let kinds: &[Kind] = match controllers {
                "" => &[Kind::MEMORY_V2, Kind::HIGH_V2, Kind::POOLS_V2],
                _ => &[Kind::MEMORY_V1, Kind::POOLS_V1],
            };
            let wanted = kinds.iter().filter(|kind| controllers.is_empty() || has_word(controllers, kind.controller));
            for kind in wanted {
                if let Some((inner, mount)) = shown(&mounts, kind, path) {
                    limits.add(roots, kind, &mount.directory(roots), &inner);
                }
            }
        }
        limits
    }

    /// Adds the limits of one kind: of the group at `inner` below the mounted `root`, and of those
    /// around it.
    fn add(&mut self, roots: &Roots, kind: &Kind, root: &Path, inner: &Path) {
        for group in inner.ancestors() {
            let dir = root.join(group);
            let limit = |of: &str| kind.limit(&dir, group, of);
            if kind.controller == "memory" {
                self.memory = tightest(self.memory.take(), limit("memory"));
                continue;
            }
            for bytes in crate::pool_sizes::sizes(roots) {
                let Some(limit) = limit(&format!("hugetlb.{}", size_of_pool(bytes))) else { continue };
                match self.pools.iter_mut().find(|(size, _)| *size == bytes) {
                    Some((_, found)) if found.room_bytes() <= limit.room_bytes() => {}
                    Some((_, found)) => *found = limit,
                    None => self.pools.push((bytes, limit)),
                }
            }
        }
    }
}

/// Whether this process is in a group that has a share of the CPUs. The root group has none.
pub(crate) fn shares_cpus(roots: &Roots) -> bool {
    let groups = roots.read_proc("self/cgroup").unwrap_or_default();
    let mounts = roots.read_proc("self/mountinfo").unwrap_or_default();
    groups.lines().filter_map(membership).any(|(controllers, path)| match controllers {
        "" => shown(&mounts, &Kind::CPU_V2, path).is_some_and(|(inner, mount)| {
            // A group of version 2 without the file shares as one task of its parent's.
            let root = mount.directory(roots);
            inner.ancestors().any(|group| root.join(group).join("cpu.weight").exists())
        }),
        _ => has_word(controllers, "cpu") && path != "/",
    })
}

/// The controllers and the path in a line of `/proc/PID/cgroup`.
fn membership(line: &str) -> Option<(&str, &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    Some((fields.next()?, fields.next()?))
}

/// Of the hierarchies of a kind that show a group, the one that shows the most of the groups around
/// it, and the group's path below it.
fn shown(mounts: &str, kind: &Kind, group: &str) -> Option<(PathBuf, Mount)> {
    let mounted = mounts.lines().filter_map(|line| Mount::of(line, kind));
    let shown = mounted.filter_map(|mount| Some((mount.below(group)?, mount)));
    shown.max_by_key(|(inner, _)| inner.components().count())
}

fn tightest(one: Option<Limit>, other: Option<Limit>) -> Option<Limit> {
    one.into_iter().chain(other).min_by_key(Limit::room_bytes)
}

/// The size of a pool's pages, as the controller's files have it.
fn size_of_pool(bytes: u64) -> String {
    let units = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1, "B"));
    format!("{}{name}", bytes / unit)
}

/// A kind of limit: the controller, and the files behind its name.
struct Kind {
    controller: &'static str,
    filesystem: &'static str,
    limit: &'static str,
    used: &'static str,
}

impl Kind {
    const MEMORY_V2: Kind = Kind { controller: "memory", filesystem: "cgroup2", limit: "max", used: "current" };
    const HIGH_V2: Kind = Kind { limit: "high", ..Kind::MEMORY_V2 };
    const POOLS_V2: Kind = Kind { controller: "hugetlb", ..Kind::MEMORY_V2 };
    const CPU_V2: Kind = Kind { controller: "cpu", ..Kind::MEMORY_V2 };
    const MEMORY_V1: Kind =
        Kind { controller: "memory", filesystem: "cgroup", limit: "limit_in_bytes", used: "usage_in_bytes" };
    const POOLS_V1: Kind = Kind { controller: "hugetlb", ..Kind::MEMORY_V1 };

    /// The limit that a group sets itself, by the files whose names begin so; `None` where it sets
    /// none.
    fn limit(&self, dir: &Path, group: &Path, of: &str) -> Option<Limit> {
        let file = dir.join(format!("{of}.{}", self.limit));
        // Where there is none, version 2 says "max", version 1 the largest number of whole pages.
        let limit_bytes = number(&file).filter(|bytes| *bytes < i64::MAX as u64 & !0xf_ffff)?;
        let used_bytes = number(&dir.join(format!("{of}.{}", self.used)))?;
        let cache_bytes = if of == "memory" { clean_cache(&dir.join("memory.stat")) } else { 0 };
        let group = format!("/{}", group.display());
        Some(Limit { group, file, limit_bytes, used_bytes, cache_bytes })
    }
}

fn number(file: &Path) -> Option<u64> {
    roots::read(file).ok()?.trim().parse().ok()
}

/// Bytes of a group's clean pages of files, those of the groups in it included.
fn clean_cache(stat: &Path) -> u64 {
    let text = roots::read(stat).unwrap_or_default();
    let of = |names: [&str; 2]| {
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        // Version 1 has those of the group alone, too.
        names.iter().find_map(|name| value(name)).unwrap_or(0u64)
    };
    let cached = of(["total_inactive_file", "inactive_file"]).saturating_add(of(["total_active_file", "active_file"]));
    let dirty = of(["total_dirty", "file_dirty"]).saturating_add(of(["total_writeback", "file_writeback"]));
    cached.saturating_sub(dirty)
}

fn has_word(list: &str, word: &str) -> bool {
    list.split(',').any(|name| name == word)
}

/// A mounted hierarchy of control groups.
struct Mount {
    root: PathBuf,
    at: PathBuf,
}

impl Mount {
    /// A line of `mountinfo`, if it is a hierarchy of this kind.
    fn of(line: &str, kind: &Kind) -> Option<Mount> {
        let (mount, of) = line.split_once(" - ")?;
        let mut of = of.split(' ');
        let (filesystem, _, options) = (of.next()?, of.next()?, of.next()?);
        let v2 = filesystem == "cgroup2";
        let fits = filesystem == kind.filesystem && (v2 || has_word(options, kind.controller));
        let mut fields = mount.split(' ').skip(3).map(|path| PathBuf::from(path.replace("\\040", " ")));
        fits.then(|| Some(Mount { root: fields.next()?, at: fields.next()? }))?
    }

    /// The part of a group's path below what is mounted; `None` if the group is not shown. A path
    /// that leaves this process's view stands for the mounted group itself.
    fn below(&self, group: &str) -> Option<PathBuf> {
        let inner = Path::new(group).strip_prefix(&self.root).ok()?;
        let leaves = inner.components().any(|part| part == Component::ParentDir);
        Some(if leaves { PathBuf::new() } else { inner.into() })
    }

    fn directory(&self, roots: &Roots) -> PathBuf {
        self.at.strip_prefix("/sys").map_or_else(|_| self.at.clone(), |below| roots.sys(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      36 31 0:33 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

    fn host(mounts: &str, groups: &str, files: &[(&str, &str)]) -> (TempDir, Roots) {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(roots.proc("self/mountinfo"), mounts);
        write(roots.proc("self/cgroup"), groups);
        files.iter().for_each(|(file, text)| write(roots.sys("fs/cgroup").join(file), text));
        (tree, roots)
    }

    fn found(mounts: &str, groups: &str, files: &[(&str, &str)]) -> Option<(String, String, u64)> {
        let (_tree, roots) = host(mounts, groups, files);
        let limit = Limits::read(&roots).memory?;
        let file = limit.file.file_name()?.to_string_lossy().into_owned();
        Some((limit.group.clone(), file, limit.room_bytes()))
    }

    fn told(group: &str, file: &str, room: u64) -> Option<(String, String, u64)> {
        Some((group.into(), file.into(), room))
    }

    #[test]
    fn the_tightest_limit_of_all_groups_around_counts_in_both_versions() {
        let none = "9223372036854771712\n";
        let v1 = [
            ("memory/memory.limit_in_bytes", none),
            ("memory/memory.usage_in_bytes", "9000"),
            ("memory/a/memory.limit_in_bytes", "5000\n"),
            ("memory/a/memory.usage_in_bytes", "4000\n"),
            (
                "memory/a/memory.stat",
                "inactive_file 1\ntotal_inactive_file 300\ntotal_active_file 200\ntotal_dirty 100\n",
            ),
            ("memory/a/b/memory.limit_in_bytes", "3000\n"),
            ("memory/a/b/memory.usage_in_bytes", "1000\n"),
        ];
        assert_eq!(found(V1, "4:cpu:/x\n3:memory:/a/b\n", &v1), told("/a", "memory.limit_in_bytes", 1400));
        assert_eq!(found(V1, "3:memory:/\n", &v1), None, "the whole machine has none");
        let v2 = [
            ("a/memory.max", "max\n"),
            ("a/memory.high", "700\n"),
            ("a/memory.current", "600\n"),
            ("a/b/memory.max", "300\n"),
            ("a/b/memory.high", "max\n"),
            ("a/b/memory.current", "250\n"),
            ("a/b/memory.stat", "anon 9\nfile 99\nfile_dirty 5\ninactive_file 55\nactive_file 10\n"),
        ];
        assert_eq!(found(V2, "0::/a/b\n", &v2), told("/a", "memory.high", 100));
        assert_eq!(found(V2, "0::/a/b/c\n", &v2[3..]), told("/a/b", "memory.max", 110));
        assert_eq!(found("", "0::/a/b\n", &v2), None, "nothing is mounted");
        assert_eq!(found(V2, "", &v2), None, "a kernel without control groups");
    }

    #[test]
    fn a_group_below_the_root_may_have_a_share_of_the_cpus() {
        let shares = |mounts, groups, files: &[(&str, &str)]| shares_cpus(&host(mounts, groups, files).1);
        let with = [("a/cpu.weight", "100\n")];
        assert!(shares(V2, "0::/a/b\n", &with) && !shares(V2, "0::/c\n", &with) && !shares(V2, "0::/\n", &with));
        assert!(shares("", "3:cpu,cpuacct:/a\n", &[]) && !shares("", "3:cpu:/\n2:cpuset:/a\n", &[]));
    }

    #[test]
    fn in_a_container_what_is_mounted_is_the_outermost_group() {
        let files = [("memory.max", "800\n"), ("memory.current", "100\n"), ("in/memory.max", "900\n")];
        let mounts = V2.replace(" / /sys", " /docker/1 /sys");
        assert_eq!(found(&mounts, "0::/docker/1/in\n", &files), told("/", "memory.max", 700));
        let outside = V2.replace(" / /sys", " /../.. /sys");
        assert_eq!(found(&outside, "0::/../../in\n", &files), told("/", "memory.max", 700));
        assert_eq!(found(V2, "0::/../other\n", &files), told("/", "memory.max", 700));
    }

    #[test]
    fn pages_of_pools_have_limits_of_their_own() {
        let (tree, roots) = host(
            V1,
            "5:hugetlb:/a\n",
            &[("hugetlb/a/hugetlb.2MB.limit_in_bytes", "8388608"), ("hugetlb/a/hugetlb.2MB.usage_in_bytes", "2097152")],
        );
        fs::create_dir_all(tree.path().join("sys/kernel/mm/hugepages/hugepages-2048kB")).expect("made");
        let limits = Limits::read(&roots);
        assert_eq!(limits.memory, None);
        assert_eq!(
            limits.pools.iter().map(|(size, of)| (*size, of.room_bytes())).collect::<Vec<_>>(),
            [(2 << 20, 6 << 20)]
        );
    }
}
