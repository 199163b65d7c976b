//! Prints the table: the engine beside `buddy_system_allocator`, the rivals
//! given, and the machine's limits.

mod against;
mod bsa;
mod replay;

use bsa::Bsa;
use kontig_bench::options::RIVALS;
use kontig_bench::quiet::{Watch, not_quiet};
use kontig_bench::rows::{self, Listener};
use kontig_bench::{Options, Row, Table, rival};
use kontig_huge_pages::HugePages;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages::new("engine", "choose smaller machines with --quick");

/// Prints rows as they are measured, since a full run takes minutes.
struct Printer {
    table: Table,
    has_rows: bool,
}

impl Listener for Printer {
    fn begins(&mut self, _what: &str) {}
    fn rows(&mut self, rows: Vec<Row>) {
        self.has_rows |= !rows.is_empty();
        self.table.add(rows);
    }
    fn without(&mut self, numbers: Vec<&'static str>, peer: &'static str) {
        self.table.without(&numbers, peer);
    }
}

fn main() -> ExitCode {
    let refused = |text: &str| {
        eprintln!("{text}");
        ExitCode::from(2)
    };
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => return refused(&text),
    };
    if let Some(commit) = &options.against {
        return match against::compare(commit, &options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(text) => refused(&text),
        };
    }
    let by_default = std::env::var_os(RIVALS).unwrap_or_default();
    let mut rivals = options.rivals.clone();
    if rivals.is_empty() {
        rivals.extend(std::env::split_paths(&by_default).filter(|file| !file.as_os_str().is_empty()));
    }
    let rivals = match rivals.iter().map(|file| rival::load(file)).collect::<Result<Vec<_>, _>>() {
        Ok(rivals) => rivals,
        Err(text) => return refused(&text),
    };
    let watch = Watch::start();
    let mut printer = Printer { table: Table::new(options.json), has_rows: false };
    rows::each(&options, Some(&Bsa::contender()), &rivals, &mut printer);
    if options.wants(&["R"], "replay") {
        printer.rows(vec![replay::row(&options)]);
    }
    if !printer.has_rows {
        return refused(&format!("no row is or has to do with '{}'", options.filter.join("' or '")));
    }
    if let Some(others) = not_quiet(watch.others()) {
        eprintln!("{others}");
    }
    ExitCode::SUCCESS
}
