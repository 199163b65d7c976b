//! The workloads that come along, by name.

/// A workload that `kontig run` knows by name; an experiment's own is richer.
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// The machine it runs on unless another is asked for.
    pub machine: &'static str,
    /// The workload as a file holds it.
    pub text: &'static str,
    /// Sysctls that belong to it, set where nobody sets them otherwise.
    pub sysctls: &'static [(&'static str, &'static str)],
}

/// One that runs on a machine of any kind.
const fn plain(name: &'static str, summary: &'static str, text: &'static str) -> Named {
    Named { name, summary, machine: "desktop-32g", text, sysctls: &[] }
}

/// One that needs files, swap, or little memory, and has a machine for that.
const fn on(name: &'static str, machine: &'static str, summary: &'static str, text: &'static str) -> Named {
    Named { name, summary, machine, text, sysctls: &[] }
}

/// All of them.
pub const WORKLOADS: &[Named] = &[
    plain(
        "hugealloc",
        "fragment memory, then allocate huge pages in the kernel until none can be had",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nsettle_s = 30\nmeasure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL|__GFP_COMP|__GFP_NOWARN\" }",
    ),
    plain(
        "heap",
        "fragment memory, then touch a 1 GiB heap on huge pages",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nsettle_s = 30\nmeasure = { kind = \"heap\", size = \"1 GiB\" }",
    ),
    plain(
        "compact",
        "fragment memory, then compact all of it once",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nmeasure = { kind = \"compact\" }",
    ),
    plain(
        "watch",
        "fragment memory, then watch kcompactd for a minute",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nmeasure = { kind = \"watch\", seconds = 60 }",
    ),
    plain(
        "watch-unmovable",
        "fragment memory with unmovable pages, then watch kcompactd for three minutes",
        "prepare = { kind = \"fragment-unmovable\", leave = \"16 MiB\" }\nmeasure = { kind = \"watch\", seconds = 180 }",
    ),
    plain(
        "hugealloc-busy",
        "fragment memory, then allocate huge pages on four CPUs while a process replaces its memory",
        BUSY,
    ),
    on("kbuild", "box-2g", "build an eighth of a Linux kernel whose tree was just unpacked", KBUILD),
    Named {
        sysctls: &[("thp.enabled", "always"), ("thp.defrag", "madvise")],
        ..on(
            "kbuild+hugealloc",
            "box-2g",
            "build half a Linux kernel, beside bursts of huge-page faults",
            KBUILD_HUGEALLOC,
        )
    },
    on("file-server", "box-2g", "stream files three times as large as memory to four clients", FILE_SERVER),
    on("java", "box-2g", "allocate through a Java heap's young generation beside a page cache that fills", JAVA),
    on("forking-store", "box-2g", "an in-memory store forks to save itself while it is written to", FORKING_STORE),
    on("guests", "box-2g", "virtual machines of several sizes come and go", GUESTS),
    on(
        "stress-highalloc",
        "xeon-4g",
        "take 95 % of memory as huge pages in three passes, two of them beside ten kernel builds",
        STRESS_HIGHALLOC,
    ),
];

/// MMTests' stress-highalloc at its commit d15fa84b, as far as a scenario can say it: the builds are `make -j1` of ten trees (memory
/// in MB / 400, and one), which have gone on for 300 s; passes 1 and 2 run beside them; after 180 s a file as large as memory is written, read and
/// removed and caches are dropped before pass 3. The builds begin together, and stop where MMTests kills them; `vm.min_free_kbytes` stays.
const STRESS_HIGHALLOC: &str = r#"
[[phase]]
name = "under load"
measured = true

[[phase.task]]
name = "highalloc"
run = { kind = "highalloc", gfp = "GFP_HIGHUSER_MOVABLE|__GFP_NOWARN", attempts = 1893, passes = 2, after_s = 300 }

[[phase.task]]
name = "build 0"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 0 }

[[phase.task]]
name = "build 1"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 1 }

[[phase.task]]
name = "build 2"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 2 }

[[phase.task]]
name = "build 3"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 3 }

[[phase.task]]
name = "build 4"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 4 }

[[phase.task]]
name = "build 5"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 5 }

[[phase.task]]
name = "build 6"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 6 }

[[phase.task]]
name = "build 7"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 7 }

[[phase.task]]
name = "build 8"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 8 }

[[phase.task]]
name = "build 9"
beside = true
copies = 1
run = { kind = "kbuild", units = 2886, jobs = 1, tree = 9 }

[[phase]]
name = "rest"
seconds = 180

[[phase]]
name = "empty"

[[phase.task]]
run = { kind = "steps", steps = [
    { do = "write", file = 1, size = "4 GiB", piece = "1 MiB" },
    { do = "read", file = 1, size = "4 GiB", piece = "1 MiB" },
    { do = "unlink", file = 1 },
    { do = "drop-caches" },
] }

[[phase]]
name = "rested"
measured = true

[[phase.task]]
name = "highalloc"
run = { kind = "highalloc", gfp = "GFP_HIGHUSER_MOVABLE|__GFP_NOWARN", attempts = 1893 }
"#;

const FILE_SERVER: &str = r#"
[[phase]]
name = "measure"
measured = true

[[phase.task]]
name = "first client"
copies = 1
run = { kind = "steps", there = [{ file = 1, size = "1 GiB" }], repeat = 2, steps = [{ do = "read", file = 1, piece = "256 KiB", as = "file" }] }

[[phase.task]]
name = "second client"
copies = 1
run = { kind = "steps", there = [{ file = 2, size = "2 GiB" }], steps = [{ do = "read", file = 2, piece = "256 KiB", as = "file" }] }

[[phase.task]]
name = "two more"
copies = 2
run = { kind = "steps", there = [{ file = 3, size = "3 GiB" }], steps = [{ do = "read", file = 3, size = "1 GiB", piece = "1 MiB", random = true, as = "file" }] }
"#;

const JAVA: &str = r#"
[[phase]]
name = "measure"
measured = true

[[phase.task]]
name = "java"
copies = 1
run = { kind = "young-generation", size = "1 GiB", eden = "512 MiB", survivors = 2, mib_s = 1000, collections = 60, advise = true, gives_back = true }

[[phase.task]]
name = "log"
beside = true
copies = 1
run = { kind = "steps", repeat = 0, steps = [
    { do = "write", file = 1, size = "64 MiB", piece = "64 KiB" },
    { do = "sleep", ms = 100 },
    { do = "read", file = 1, size = "64 MiB" },
    { do = "unlink", file = 1 },
] }
"#;

const FORKING_STORE: &str = r#"
[[phase]]
name = "measure"
measured = true

[[phase.task]]
copies = 1
run = { kind = "forking-store", size = "768 MiB", saves = 5, requests = 50000 }
"#;

const GUESTS: &str = r#"
[[phase]]
name = "measure"
measured = true

[[phase.task]]
copies = 1
run = { kind = "guests", sizes = ["128 MiB", "256 MiB", "512 MiB"], at_once = 4, guests = 40, lives_s = 4 }
"#;

const KBUILD: &str = r#"
[[phase]]
name = "unpack"

[[phase.task]]
copies = 1
run = { kind = "steps", steps = [{ do = "write", file = 1, size = "1500 MiB", piece = "128 KiB" }, { do = "sync" }] }

[[phase]]
name = "measure"
measured = true

[[phase.task]]
copies = 1
run = { kind = "kbuild", jobs = 8 }
"#;

const KBUILD_HUGEALLOC: &str = r#"
[[phase]]
name = "unpack"

[[phase.task]]
copies = 1
run = { kind = "unpack", files = 78579, size = "1417 MiB" }

[[phase]]
name = "measure"
measured = true

[[phase.task]]
name = "tar"
copies = 1
run = { kind = "unpack", files = 39290, size = "709 MiB", elsewhere = true }

[[phase.task]]
name = "kbuild"
copies = 1
run = { kind = "kbuild", units = 1443, jobs = 34 }

[[phase.task]]
name = "hugealloc"
copies = 1
run = { kind = "thp-bursts", size = "74 MiB", bursts = 3, every_ms = 31300, written = 512 }
"#;

const BUSY: &str = r#"
[[phase]]
name = "prepare"
task = [{ run = { kind = "fragment", holes = "random" } }]

[[phase]]
name = "settle"
seconds = 30

[[phase.task]]
name = "churn"
background = true
cpus = [4]
run = { kind = "churn", size = "64 MiB" }

[[phase]]
name = "measure"
measured = true

[[phase.task]]
cpus = [0, 1, 2, 3]
run = { kind = "hugealloc", gfp = "GFP_KERNEL|__GFP_COMP|__GFP_NOWARN" }
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn workloads_known_by_name_can_be_run_and_are_random_where_their_holes_are() {
        for Named { name, text, .. } in WORKLOADS {
            let w: Workload = toml::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(w.validate(), Ok(()), "{name}");
            let fixed = ["watch-unmovable", "java"].contains(name);
            assert_eq!(w.scenario().is_random(), !fixed, "{name}");
        }
    }
}
