//! The workloads that come along, by name.

/// The workloads `kontig run` knows by name, with a line each; an experiment's own is richer.
pub const WORKLOADS: &[(&str, &str, &str)] = &[
    (
        "hugealloc",
        "fragment memory, then allocate huge pages in the kernel until none can be had",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nsettle_s = 30\nmeasure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL|__GFP_COMP|__GFP_NOWARN\" }",
    ),
    (
        "heap",
        "fragment memory, then touch a 1 GiB heap on huge pages",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nsettle_s = 30\nmeasure = { kind = \"heap\", size = \"1 GiB\" }",
    ),
    (
        "compact",
        "fragment memory, then compact all of it once",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nmeasure = { kind = \"compact\" }",
    ),
    (
        "watch",
        "fragment memory, then watch kcompactd for a minute",
        "prepare = { kind = \"fragment\", holes = \"random\" }\nmeasure = { kind = \"watch\", seconds = 60 }",
    ),
    (
        "watch-unmovable",
        "fragment memory with unmovable pages, then watch kcompactd for three minutes",
        "prepare = { kind = \"fragment-unmovable\", leave = \"16 MiB\" }\nmeasure = { kind = \"watch\", seconds = 180 }",
    ),
    (
        "hugealloc-busy",
        "fragment memory, then allocate huge pages on four CPUs while a process replaces its memory",
        BUSY,
    ),
];

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
        for (name, _, text) in WORKLOADS {
            let w: Workload = toml::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(w.validate(), Ok(()), "{name}");
            assert_eq!(w.scenario().is_random(), *name != "watch-unmovable", "{name}");
        }
    }
}
