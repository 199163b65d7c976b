//! `kontig bound`: the fewest page moves for more blocks, and the blocks that no move can free.

use crate::answer::{document, fitted, not_read};
use crate::check::profile;
use crate::roots::HostArgs;
use crate::snapshot::page_size;
use clap::Args;
use kontig_error::files::open_snapshot;
use kontig_error::{AskedWrongly, Error};
use kontig_live::bound::blocks::Class;
use kontig_live::bound::{Asked, Bound, Cell, Counts, Gain, Range};
use kontig_live::{Snapshot, need};
use kontig_terminal::number::{MOST, whole};
use kontig_terminal::{Ending, Grid, columns};
use kontig_text::{grouped, short_size};
use std::path::PathBuf;

/// Options of `kontig bound`.
#[derive(Args)]
pub struct BoundArgs {
    /// Look at a snapshot instead of this host
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Blocks of this size, as 32M, 1G, 64K, or an order as order13
    #[arg(long, value_name = "SIZE|orderN", default_value = "2M")]
    block: String,
    /// Look at this node only
    #[arg(long, value_name = "NODE", value_parser = whole::<u32>(0..=MOST))]
    node: Option<u32>,
    /// The cost of this number of blocks more; without it, of some shares of what can be had
    #[arg(long, value_name = "BLOCKS", value_parser = whole::<u64>(1..=MOST))]
    more: Option<u64>,
    /// Show every range of 1 GiB, with a map of its blocks
    #[arg(long)]
    map: bool,
    /// Rules of the compaction (default: the newest profile that is not newer than the kernel)
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Print JSON (schema kontig.bound/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig bound                          this host (root)\n  \
    kontig bound --more 500               what 500 more huge pages cost at least\n  \
    kontig bound --snapshot host.snap --map\n  \
    kontig bound --block 1G --json\n\n\
    What compaction takes is the engine's own, run on a copy of the host.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 5 more privilege is needed (root).";

/// Carries out `kontig bound`.
pub fn bound(a: &BoundArgs) -> Result<Ending, Error> {
    let snapshot = match &a.snapshot {
        Some(path) => open_snapshot(path)?,
        None => match Snapshot::take(&a.host.roots()?, page_size()) {
            Ok(snapshot) => snapshot,
            Err(e) => return not_read("bound", &e),
        },
    };
    let order = need::order(&a.block, snapshot.host.page_size)
        .map_err(|why| AskedWrongly::Value(format!("--block: {why}; say 64K, 2M, 1G or order13")))?;
    if let Some(node) = a.node.filter(|node| !snapshot.nodes().contains(node)) {
        let known: Vec<String> = snapshot.nodes().iter().map(u32::to_string).collect();
        let text = format!("--node: node {node} has no memory; nodes with memory: {}", known.join(", "));
        return Err(AskedWrongly::Value(text).into());
    }
    let profile = profile(a.profile.as_deref(), &snapshot.host.kernel)?;
    let bound = Bound::of(&snapshot, &profile, Asked { order, node: a.node, more: a.more });
    let text = if a.json { document(&bound, false) } else { text(&bound, a.map) };
    kontig_terminal::print(&text)?;
    Ok(Ending::Done)
}

fn text(bound: &Bound, map: bool) -> String {
    let mut text = fitted(&counts(bound));
    text += &gains(bound);
    text += &histogram(&bound.histogram);
    text += &placement(bound);
    text += &fitted(&gigabytes(&bound.gigabytes));
    if map {
        text += &ranges(bound);
    }
    text
}

fn counts(bound: &Bound) -> String {
    let c = &bound.counts;
    let of = bound.node.map_or(String::new(), |node| format!(" of node {node}"));
    let room = if c.reachable < c.emptiable {
        format!(" (there is room to empty {} of them)", grouped(c.reachable))
    } else {
        String::new()
    };
    let never = match c.never {
        0 => String::new(),
        n => format!(", {} are partly no memory of the allocator's", grouped(n)),
    };
    format!(
        "Linux {}, {} blocks of {}{of}: {} free, {} can be emptied{room}, {} poisoned by pages that stay{never}\n",
        bound.kernel,
        grouped(c.blocks),
        short_size(bound.block_bytes),
        grouped(c.free),
        grouped(c.emptiable),
        grouped(c.poisoned)
    )
}

fn gains(bound: &Bound) -> String {
    let title = "The fewest page moves for more blocks, and what this kernel's compaction takes for them\n";
    let no_probe = bound.no_probe.iter().map(|why| format!("Compaction was not tried: {why}\n"));
    let mut grid = Grid::new(["more", "fewest moves", "compaction", "times", "frames looked at", "CPU"], &[]);
    for Gain { more, fewest_moves, compaction } in &bound.gains {
        let none = || "–".to_string();
        let times = compaction.zip(fewest_moves.filter(|n| *n > 0));
        grid.row(vec![
            grouped(*more),
            fewest_moves.map_or("no way".into(), grouped),
            compaction.map_or_else(none, |effort| grouped(effort.pages_moved)),
            times.map_or_else(none, |(effort, least)| format!("{:.1}", effort.pages_moved as f64 / least as f64)),
            compaction.map_or_else(none, |effort| grouped(effort.frames_scanned)),
            compaction.map_or_else(none, |effort| cpu(effort.cpu_seconds)),
        ]);
    }
    let whole = bound.probe.map(|end| {
        format!(
            "The whole compaction, by the rules of {}: {} more blocks for {} page moves and {} frames looked at, {} \
             of a CPU\n",
            bound.profile,
            grouped(end.more),
            grouped(end.pages_moved),
            grouped(end.frames_scanned),
            cpu(end.cpu_seconds)
        )
    });
    let table = match bound.gains.is_empty() {
        true => fitted("No move of pages makes another block.\n"),
        false => fitted(title) + &grid.text(2, columns()),
    };
    table + &fitted(&no_probe.chain(whole).collect::<String>())
}

/// Blocks by their movable pages, a row each, and by those that stay, a column each.
fn histogram(cells: &[Cell]) -> String {
    let name = |bounds: [u64; 2]| match bounds {
        [a, b] if a == b => grouped(a),
        [a, b] => format!("{}–{}", grouped(a), grouped(b)),
    };
    let Some(first) = cells.first() else { return String::new() };
    let across: Vec<String> =
        cells.iter().take_while(|c| c.movable == first.movable).map(|c| format!("{} stay", name(c.staying))).collect();
    let mut grid = Grid::new(std::iter::once("movable").chain(across.iter().map(String::as_str)), &[]);
    for row in cells.chunks(across.len()) {
        let of = |cell: &Cell| if cell.blocks == 0 { "·".into() } else { grouped(cell.blocks) };
        grid.row(std::iter::once(name(row[0].movable)).chain(row.iter().map(of)).collect());
    }
    fitted("Blocks by their movable pages, and by their pages that stay\n") + &grid.text(2, columns())
}

fn placement(bound: &Bound) -> String {
    let p = &bound.placement;
    if p.poisoned == 0 {
        return String::new();
    }
    let text = format!(
        "{} pages that stay poison {} blocks; side by side they would take {}: perfect placement would save {}\n",
        grouped(p.staying_pages),
        grouped(p.poisoned),
        grouped(p.least),
        grouped(p.saved())
    );
    let mut grid = Grid::new(["in the way", "blocks", "alone", "pages"], &[0]);
    for kind in &bound.kinds {
        grid.row(vec![kind.kind.into(), grouped(kind.blocks), grouped(kind.alone), grouped(kind.pages)]);
    }
    fitted(&text) + &grid.text(2, columns())
}

fn gigabytes(c: &Counts) -> String {
    if c.blocks == 0 {
        return String::new();
    }
    format!(
        "Of {} ranges of 1 GiB: {} free, {} can be emptied ({} at a time), {} hold pages that stay or no memory\n",
        grouped(c.blocks),
        grouped(c.free),
        grouped(c.emptiable),
        grouped(c.reachable),
        grouped(c.poisoned + c.never)
    )
}

/// Columns of a range's map.
const MAP: usize = 64;

fn ranges(bound: &Bound) -> String {
    let mut text = fitted(
        "Every range of 1 GiB: blocks that are free, can be emptied, are poisoned; and its map, the worst of some \
         blocks in each place: . free, - can be emptied, # poisoned, x never free\n",
    );
    for range in &bound.ranges {
        let (n, c) = (range.node, &range.counts);
        let start = short_size(range.start);
        let numbers = format!("{:>5} {:>5} {:>5}", c.free, c.emptiable, c.poisoned + c.never);
        text += &format!("  node {n} {start:>5} {numbers}  {}\n", map(range, bound));
    }
    text
}

/// A range's blocks as letters, some to a place; a blank is no memory.
fn map(range: &Range, bound: &Bound) -> String {
    let pages_of_range = (1usize << 30) / bound.page_bytes as usize;
    let places = MAP.min((pages_of_range >> bound.order).max(1));
    let first = range.start as usize / bound.page_bytes as usize;
    let mut letters = vec![' '; places];
    let worse = |a: char, b: char| " .-#x".find(a) > " .-#x".find(b);
    for (start, class) in &range.map {
        let letter = match class {
            Class::Free => '.',
            Class::Emptiable => '-',
            Class::Poisoned => '#',
            Class::Never => 'x',
        };
        let place = ((start - first) * places / pages_of_range).min(places - 1);
        if worse(letter, letters[place]) {
            letters[place] = letter;
        }
    }
    letters.into_iter().collect::<String>().trim_end().to_string()
}

/// Seconds of a CPU, to the millisecond.
fn cpu(seconds: f64) -> String {
    format!("{seconds:.3} s")
}
