//! Prints the table: the engine beside `buddy_system_allocator` and the machine's limits.

use kontig_bench::streams::{self, Stream, Visit};
use kontig_bench::{Bsa, Kontig, Options, Table, compaction, measure, metadata, replay, simulator, soundness, turns};
use kontig_huge_pages::HugePages;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages::new("engine", "choose smaller machines with --quick");

/// Runs each stream that is wanted on both.
struct Both<'a> {
    options: &'a Options,
    table: &'a Table,
}

impl Visit for Both<'_> {
    fn stream(&mut self, numbers: &[&str], text: &str, stream: &impl Stream) {
        if self.options.wants(numbers, text) {
            self.table.add(measure::compare::<Kontig, Bsa>(stream, self.options));
        }
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let (o, table) = (&options, &Table::new(options.json));
    // First, while nothing else is in memory.
    if o.wants(&["9", "9a", "9b"], "metadata") {
        table.add(metadata::rows(o));
    }
    streams::each(o, &mut Both { options: o, table });
    if o.wants(&["11", "12"], "soundness") {
        table.add(soundness::rows(o));
    }
    if o.wants(&["13", "13a", "13b"], "simulator") {
        table.add(simulator::event_rows(o));
    }
    if o.wants(&["T1", "T80", "T1000"], "turns") {
        table.add(turns::rows(o));
    }
    if o.wants(&["F"], "fragmenting") {
        table.add([simulator::fragmenting_row(o)]);
    }
    if o.wants(&["S", "M"], "compaction") {
        table.add(compaction::rows(o));
    }
    if o.wants(&["R"], "replay") {
        table.add([replay::row(o)]);
    }
    ExitCode::SUCCESS
}
