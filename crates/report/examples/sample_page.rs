//! Writes a page and a picture made of invented results, to look at: `cargo run --example
//! sample_page -- DIRECTORY`.

#[path = "../tests/suite/common/mod.rs"]
mod common;

use kontig_report::html::{Page, PageExperiment, page};
use kontig_report::overview::{Listed, Overview};
use kontig_report::svg::{Picture, memory_map_svg};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let (small, large) = (common::small(), common::large());
    let table = common::table();
    let mut unpublished = common::table();
    unpublished.id = "one-spare-huge-page".into();
    unpublished.target = String::new();
    unpublished.rows.iter_mut().for_each(|row| row.published.clear());
    let pace = common::pace();
    let experiment = |result, runs, pace, machine: &str| PageExperiment {
        result,
        runs,
        pace,
        pace_machine: "xeon-64g".into(),
        summary: format!(
            "Invented results on a machine of {machine}. The baseline compacts when asked, the other ahead of time."
        ),
        notes: "These figures are made up by a test.\n\nThey show the page, and say nothing about Linux.".into(),
    };
    let listed = [&table, &unpublished].map(|result| Listed { series: "Seed 000", result });
    let html = page(&Page {
        title: "Proactive compaction, reproduced".into(),
        subtitle: "A sample of Kontig's report, with invented figures".into(),
        overview: Some(Overview::new(&listed, &[])),
        experiments: vec![experiment(&table, &large, &pace, "1 TiB"), experiment(&unpublished, &small, &[], "64 MiB")],
    });
    std::fs::write(directory.join("page.html"), html)?;
    for (name, runs) in [("map-small.svg", &small), ("map-large.svg", &large)] {
        let picture = Picture { title: "Every pageblock of the machine, over the run".into(), ..Picture::default() };
        std::fs::write(directory.join(name), memory_map_svg(runs, &picture)?)?;
    }
    print!("{}", kontig_report::table::render(&table, &kontig_report::table::Figures::All, None, false));
    print!("{}", kontig_report::pace::render(&pace, "xeon-64g"));
    print!("{}", kontig_report::table::render(&table, &kontig_report::table::Figures::All, Some(80), true));
    print!("{}", kontig_report::table::render(&unpublished, &kontig_report::table::Figures::All, Some(100), false));
    print!("{}", kontig_report::table::render(&common::repeated(), &kontig_report::table::Figures::All, None, false));
    print!(
        "{}",
        kontig_report::table::render(&common::repeated(), &kontig_report::table::Figures::All, Some(80), false)
    );
    Ok(())
}
