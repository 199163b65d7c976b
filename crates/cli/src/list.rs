//! `kontig list`: a line for everything that has a name.

use kontig_error::Error;
use kontig_lab::experiment::Experiment;
use kontig_lab::{catalog, expected, profiles, sysctls, vmstat};
use kontig_mm::sysctl::SYSCTLS;
use kontig_terminal::{width, wrap};
use kontig_text::time;

/// Memory of large experiments, as it was measured with two runs side by side.
const MEMORY: [(&str, &str); 12] = [
    ("hugepage-latency", "3.7 GiB"),
    ("java-heap", "4.3 GiB"),
    ("stutter", "0.5 GiB"),
    ("hugealloc-kbuild", "1 GiB"),
    ("hugealloc-kbuild-async", "1 GiB"),
    ("hugealloc-kbuild-wmarks", "1 GiB"),
    ("hugealloc-kbuild-handoff", "1 GiB"),
    ("hugealloc-kbuild-vanillafix", "1 GiB"),
    ("thpscale", "1.5 GiB"),
    ("usemem", "0.9 GiB"),
    ("thpfioscale", "2.5 GiB"),
    ("backoff", "1.3 GiB"),
];

/// Time on a CPU and memory of one run of workloads, as they were measured on cores that had other
/// work.
const WORKLOADS_TAKE: [(&str, &str); 6] = [
    ("jvm-beside-files", "7 s and 0.3 GiB"),
    ("postgres-like", "18 s and 0.4 GiB"),
    ("vm-host", "21 s and 1.1 GiB"),
    ("model-server", "7 s and 0.6 GiB"),
    ("dpdk-start", "5 s and 0.2 GiB"),
    ("container-host", "16 s and 0.2 GiB"),
];

/// A workload's machine, with what a run takes where that is known.
fn on_machine(name: &str, machine: &str) -> String {
    let takes = WORKLOADS_TAKE.iter().find(|(known, _)| *known == name);
    takes.map_or(format!("on {machine}"), |(_, takes)| format!("on {machine}: {takes}"))
}

/// A line for each experiment: its summary, with what it takes on two cores.
fn experiments() -> Result<Vec<(String, String)>, Error> {
    let all = catalog::experiments()?;
    let times = expected::of_each(&all, 2)?;
    let line = |(e, seconds): (&Experiment, Option<f64>)| {
        let takes = seconds.map_or("a time that is not known".into(), |seconds| format!("about {}", time(seconds)));
        let memory = MEMORY.iter().find(|(name, _)| *name == e.id);
        let memory = memory.map_or(String::new(), |(_, size)| format!(" and {size}"));
        (e.id.clone(), format!("{} ({takes}{memory}, on 2 cores)", e.summary))
    };
    Ok(all.iter().zip(times).map(line).collect())
}

pub fn list(json: bool) -> Result<(), Error> {
    let line = |name: &str, summary: &str| (name.to_string(), summary.to_string());
    let sections: Vec<(&str, Vec<(String, String)>)> = vec![
        ("experiments", experiments()?),
        (
            "workloads",
            catalog::workloads()?
                .iter()
                .map(|(name, w)| line(name, &format!("{} ({})", w.summary, on_machine(name, &w.machine))))
                .collect(),
        ),
        ("machines", catalog::machines()?.iter().map(|m| line(&m.name, &m.summary)).collect()),
        ("profiles", profiles::all().iter().map(|p| line(&p.name, &p.summary)).collect()),
        ("switches", kontig_profiles::switches().iter().map(|(name, s)| line(name, &s.summary)).collect()),
        ("sysctls", SYSCTLS.iter().map(|s| line(s.name, &sysctls::listing(s))).collect()),
    ];
    if json {
        let entries = |e: &[(String, String)]| {
            e.iter().map(|(n, s)| serde_json::json!({ "name": n, "summary": s })).collect::<Vec<_>>()
        };
        let mut doc = serde_json::json!({ "schema": "kontig.list/1" });
        for (title, e) in &sections {
            doc[*title] = entries(e).into();
        }
        doc["counters"] = counters();
        return kontig_terminal::print(&format!("{doc:#}\n"));
    }
    let mut text = String::new();
    for (title, entries) in &sections {
        let names = entries.iter().map(|(n, _)| n.len()).max().unwrap_or(0);
        text += &format!("{title}\n");
        for (name, summary) in entries {
            text += &wrap(&format!("  {name:names$}  "), summary, names + 4, width());
        }
    }
    kontig_terminal::print(&text)
}

/// The counters that formulas of targets and figures can use. They are too many for the text.
fn counters() -> serde_json::Value {
    let entry = |counter: kontig_mm::Counter| {
        let better = vmstat::better(&counter);
        serde_json::json!({ "name": counter.name, "unit": counter.unit, "better": better, "summary": counter.words })
    };
    vmstat::declared().map(entry).collect()
}
