//! `kontig bench translation`: what huge pages gain on this host, and a machine file that says so.

mod answer;
mod machine;
mod page;
mod tables;

use answer::{about, conclusions};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kontig_bench::quiet::not_quiet;
use kontig_bench::translation::measure;
use kontig_bench::translation::measured::{FirstTouch, Loop, Measured, Point};
use kontig_bench::translation::programs;
use kontig_error::files::{check_distinct, check_new, check_writable, write_file};
use kontig_error::{Error, Failed};
use kontig_lab::catalog;
use kontig_lab::session::memory_for_runs;
use kontig_program::Hot;
use kontig_terminal::{print, print_json};
use kontig_terminal::{width, wrap};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tables::{Tried, loops, missing, of_programs, other_sizes, said};

pub const HELP: &str = "Examples:\n  \
    kontig bench translation                                what huge pages gain here\n  \
    kontig bench translation --machine box-2g --out my.toml\n  \
    kontig run jvm-heap --machine my.toml --set thp.enabled=never,always\n\n\
    Loops go over up to 2 GiB on small pages and on huge ones, by turns: they take a quarter of the memory \
    available, half a minute, and need no root. Huge pages must not be switched off \
    (transparent_hugepage/enabled is 'always' or 'madvise'). A chase is what lists, trees and hash maps do: each \
    access waits for the one before. Gains below 5 % are not shown to be any.\n\n\
    Folios of 64 KiB are measured too if transparent_hugepage/hugepages-64kB/enabled is not 'never', and pages of \
    1 GiB if the pool has free ones. Nothing is set here.";

/// Options of `kontig bench translation`.
#[derive(Args)]
#[command(after_help = HELP)]
pub struct TranslationArgs {
    /// Write a machine file: the machine of --machine with this host's address translation and
    /// first touch. An existing file is refused
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The machine that --out changes
    #[arg(long, value_name = "NAME|FILE", default_value = "server-64g", requires = "out")]
    machine: String,
    /// Also hold the model against a Java heap, a hash join and a compiler: needs java, gcc and
    /// valgrind, and ten minutes
    #[arg(long)]
    programs: bool,
    /// Write a Markdown page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print one JSON document (schema kontig.bench-translation/3)
    #[arg(long)]
    json: bool,
}

pub fn translation(args: &TranslationArgs) -> Result<(), Error> {
    let base = args.out.as_ref().map(|out| Ok::<_, Error>((out, catalog::machine(&args.machine)?.0))).transpose()?;
    check_distinct(&[("--out", args.out.as_deref()), ("--markdown", args.markdown.as_deref())])?;
    args.out.iter().try_for_each(|path| check_new(path))?;
    args.out.iter().chain(&args.markdown).try_for_each(|path| check_writable(path))?;
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed:>4}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    let told = |what: &str| bar.set_message(what.to_string());
    let measured =
        measure(memory_for_runs(), told).map_err(|reason| Failed::Run { run: "bench translation".into(), reason })?;
    let held = if args.programs { programs::hold(&measured, told) } else { Vec::new() };
    bar.finish_and_clear();
    if let Some((out, base)) = base {
        write_file(out, machine::machine(&args.machine, &base, out, &measured)?.as_bytes())?;
    }
    if let Some(path) = &args.markdown {
        write_file(path, page::page(&measured, &held).as_bytes())?;
    }
    if args.json { print_json(&document(&measured, &held)) } else { print(&text(&measured, &held)) }
}

fn text(m: &Measured, held: &[Tried]) -> String {
    let paragraphs: String = conclusions(m).iter().map(|text| wrap("", text, 0, width()) + "\n").collect();
    let others = other_sizes(m).map_or(String::new(), |grid| grid.text(0, None) + "\n");
    let noise = not_quiet(m.others).map_or(String::new(), |noise| wrap("", &noise, 0, width()));
    let mut text = paragraphs + &loops(m).text(0, None) + "\n" + &others + &wrap("", &about(m), 0, width()) + &noise;
    if let Some(grid) = of_programs(held) {
        text += &format!("\n{}", grid.text(0, None));
    }
    missing(held).fold(text, |text, line| text + &wrap("", &line, 0, width()))
}

fn document(m: &Measured, held: &[Tried]) -> serde_json::Value {
    let point = |point: &Point| {
        let [small, larger] = point.modelled(&m.processor);
        let of = match point.of {
            Loop::Chase => "chase",
            Loop::LineAPage => "line-a-page",
            Loop::Skewed(Hot::Together) => "skewed-together",
            Loop::Skewed(Hot::Scattered) => "skewed-scattered",
        };
        json!({
            "loop": of, "bytes": point.bytes, "larger_pages": point.larger.name(),
            "small_ns": point.ns[0], "larger_ns": point.ns[1],
            "modelled_small_ns": small, "modelled_larger_ns": larger,
        })
    };
    let of_program = |(name, held): &Tried| match held {
        Ok(held) => json!({
            "program": name, "known": held.known, "small_s": held.seconds[0], "huge_s": held.seconds[1],
            "gain_percent": held.measured(), "range_percent": held.range, "predicted_percent": held.predicted,
            "verdict": said(held.verdict()).to_lowercase(),
        }),
        Err(reason) => json!({ "program": name, "missing": reason }),
    };
    let FirstTouch { ns, again_ns } = m.first_touch;
    let of_other_sizes = m.other_sizes.iter().filter_map(|(_, points)| points.as_ref().ok()).flatten();
    let not_measured: Vec<_> = m
        .other_sizes
        .iter()
        .filter_map(|(pages, points)| Some(json!({ "pages": pages.name(), "reason": points.as_ref().err()? })))
        .collect();
    json!({
        "schema": "kontig.bench-translation/3",
        "version": env!("CARGO_PKG_VERSION"),
        "processor": m.processor,
        "points": m.points.iter().chain(&m.skewed).chain(of_other_sizes).map(point).collect::<Vec<_>>(),
        "not_measured": not_measured,
        "first_touch_of_2_mib": {
            "small_ns": ns[0], "huge_ns": ns[1], "small_again_ns": again_ns[0], "huge_again_ns": again_ns[1],
        },
        "small_pages_per_group_of_8": m.per_group,
        "frames_seen": m.frames_seen,
        "programs": held.iter().map(of_program).collect::<Vec<_>>(),
        "spread_percent": m.spread_percent,
        "cpus_of_others": m.others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_bench::translation::memory::Pages;
    use kontig_translation::{Independent, Processor};

    fn chase(mib: usize, larger: Pages, ns: [f64; 2]) -> Point {
        Point { of: Loop::Chase, bytes: mib << 20, larger, ns, per_group: 2.0 }
    }

    pub(super) fn measured() -> Measured {
        let zen4 = catalog::machine("zen4-guest-16g").expect("built in").0.translation.expect("measured");
        let independent = vec![Independent { size: "2 GiB".into(), small_ns: 17.5, huge_ns: 17.1 }];
        let processor = Processor { independent, ..zen4 };
        let at = |mib: usize, ns| chase(mib, Pages::Huge, ns);
        Measured {
            processor,
            points: vec![at(16, [142.0, 139.0]), at(256, [188.0, 170.0]), at(2048, [423.0, 291.0])],
            first_touch: FirstTouch { ns: [1.1e6, 2.2e6], again_ns: [1.0e6, 0.4e6] },
            skewed: Vec::new(),
            other_sizes: vec![
                (Pages::Folios, Ok(vec![chase(2048, Pages::Folios, [400.0, 300.0])])),
                (Pages::Gigantic, Err("none is free in the pool".into())),
            ],
            per_group: 2.0,
            frames_seen: true,
            spread_percent: 3.0,
            others: None,
        }
    }

    #[test]
    fn the_gain_is_said_first() {
        let text = text(&measured(), &[]).replace('\n', " ");
        assert!(
            text.starts_with("Accesses that wait for each other (lists, trees, hash maps) over 2 GiB are 31 % faster")
        );
        assert!(
            text.contains("do not wait are as fast on huge pages as on small ones over 2 GiB: 17.5 ns and 17.1 ns")
        );
        assert!(
            text.contains("wait are 25 % faster on folios of 64 KiB over 2 GiB: 400 and 300 ns. On pages of 1 GiB")
        );
    }
}
