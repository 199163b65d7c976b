//! `kontig bound`: the fewest page moves for more blocks, and the blocks that no move can free.

use crate::answer::{cpu, document, fitted, not_read};
use crate::roots::HostArgs;
use crate::rules::profile;
use clap::Args;
use kontig_error::{AskedWrongly, Error};
use kontig_live::blocks::Class;
use kontig_live::bound::{Asked, Bound, Cell, Counts, Effort, Gain, Range};
use kontig_live::snapshot::host_page_size;
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
    /// Print JSON (schema kontig.bound/2)
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
    What compaction takes is the engine's own, run on a copy of the host: as one write to compact_memory, and as one \
    after sync.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 5 more privilege is needed (root).";

/// Carries out `kontig bound`.
pub fn bound(a: &BoundArgs) -> Result<Ending, Error> {
    let snapshot = match &a.snapshot {
        Some(path) => Snapshot::open(path)?,
        None => match Snapshot::take(&a.host.roots()?, host_page_size()) {
            Ok(snapshot) => snapshot,
            Err(e) => return not_read("bound", &e),
        },
    };
    let order = need::order(&a.block, snapshot.host.page_size)
        .map_err(|why| AskedWrongly::Value(format!("--block: {why}; say 64K, 2M, 1G or order13")))?;
    if order == 0 {
        let text = "--block: a single page needs no other to be moved; say 64K, 2M, 1G or order13";
        return Err(AskedWrongly::Value(text.into()).into());
    }
    if let Some(node) = a.node.filter(|node| !snapshot.nodes().contains(node)) {
        let known: Vec<String> = snapshot.nodes().iter().map(u32::to_string).collect();
        let text = format!("--node: node {node} has no memory; nodes with memory: {}", known.join(", "));
        return Err(AskedWrongly::Value(text).into());
    }
    let profile = profile("bound", a.profile.as_deref(), &snapshot.host.kernel)?;
    let bound = Bound::of(&snapshot, &profile, Asked { order, node: a.node, more: a.more });
    let text = if a.json { document(&bound, false) } else { text(&bound, a.map) };
    kontig_terminal::print(&text)?;
    Ok(Ending::Done)
}

fn text(bound: &Bound, map: bool) -> String {
    let mut text = fitted(&counts(bound));
    text += &bound.on_cpus_lists.words(bound.page_bytes).map_or(String::new(), |words| fitted(&(words + "\n")));
    text += &gains(bound);
    text += &histogram(&bound.histogram);
    text += &placement(bound);
    text += &fitted(&gigabytes(bound));
    if map {
        text += &ranges(bound);
    }
    text
}

fn counts(bound: &Bound) -> String {
    let Counts { of_class: c, more_at_most, more_in_compactions_room } = &bound.counts;
    let of = bound.node.map_or(String::new(), |node| format!(" of node {node}"));
    let room = match (*more_at_most, *more_in_compactions_room) {
        _ if c.emptiable == 0 => String::new(),
        (most, room) if most == room && most == c.emptiable => String::new(),
        (most, room) => format!(
            " ({} at most with all free memory, {} with the room that the kernel's compaction uses)",
            grouped(most),
            grouped(room)
        ),
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
    if bound.gains.is_empty() {
        return fitted("No move of pages makes another block.\n");
    }
    let title = "The fewest page moves for more blocks, and those of this kernel's compaction: as it is, and once \
                 dirty pages have been written (sync)\n";
    let mut grid = Grid::new(["more", "fewest", "as it is", "times", "CPU", "synced", "times", "CPU"], &[]);
    for Gain { more, fewest_moves, compaction, synced } in &bound.gains {
        let mut row = vec![grouped(*more), fewest_moves.map_or("no way".into(), grouped)];
        row.extend(compared(*compaction, *fewest_moves));
        row.extend(compared(*synced, *fewest_moves));
        grid.row(row);
    }
    let mut text = fitted(title) + &grid.text(2, columns());
    if let Some(why) = &bound.no_probe {
        return text + &fitted(&format!("Compaction was not tried: {why}\n"));
    }
    text += &fitted(
        "times: moves of the compaction for each of the fewest; –: it ends before it has made as many, or the fewest \
         are 0\n",
    );
    text += &fitted(&ends(bound));
    text
}

/// The moves of a compaction, how often the fewest those are, and its CPU time.
fn compared(effort: Option<Effort>, fewest: Option<u64>) -> [String; 3] {
    let Some(effort) = effort else { return ["–", "–", "–"].map(String::from) };
    let times = fewest.filter(|n| *n > 0).map(|least| format!("{:.1}", effort.pages_moved as f64 / least as f64));
    [grouped(effort.pages_moved), times.unwrap_or_else(|| "–".into()), cpu(effort.cpu_seconds)]
}

/// How both compactions end, where the first ends early, and how far that can be relied on.
fn ends(bound: &Bound) -> String {
    let end = |name: &str, end: &Effort| {
        format!(
            "{name}: {} more {} for {} page moves, {} frames looked at, {} of a CPU\n",
            grouped(end.more),
            if end.more == 1 { "block" } else { "blocks" },
            grouped(end.pages_moved),
            grouped(end.frames_scanned),
            cpu(end.cpu_seconds)
        )
    };
    let mut text = bound.probe.iter().map(|effort| end("To its end as it is", effort)).collect::<String>();
    for ended in &bound.ended {
        text += &format!(
            "– in node {} zone {} it ends at {} % of the zone, at a large dirty folio of a file, which it cannot \
             split\n",
            ended.node, ended.zone, ended.percent
        );
    }
    if !bound.ended.is_empty() {
        text += &bound.probe_synced.iter().map(|effort| end("To its end after sync", effort)).collect::<String>();
    }
    if bound.probe.is_some() && bound.without_a_move > 0 {
        text += &format!(
            "– {} of these take no move: they are whole once CPUs' lists are emptied, as 'kontig prepare' does\n",
            grouped(bound.without_a_move)
        );
    }
    if let Some(confidence) = &bound.confidence {
        let because = match confidence.because.is_empty() {
            true => String::new(),
            false => format!(": {}", confidence.because.join("; ")),
        };
        text += &format!("By the rules of {}, confidence {}{because}\n", bound.profile, confidence.level.word());
    }
    text
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

fn gigabytes(bound: &Bound) -> String {
    let Counts { of_class: c, more_at_most, .. } = &bound.gigabytes;
    // Of blocks of that size and above, the first line has said it.
    if c.blocks == 0 || bound.block_bytes >= 1 << 30 {
        return String::new();
    }
    let parts = match bound.ranges.iter().filter(|range| !range.is_whole).count() {
        0 => String::new(),
        n => format!("; {n} more at the ends of zones are not whole"),
    };
    format!(
        "Of {} whole ranges of 1 GiB: {} free, {} can be emptied ({} at a time), {} hold pages that stay, {} are \
         partly no memory of the allocator's{parts}\n",
        grouped(c.blocks),
        grouped(c.free),
        grouped(c.emptiable),
        grouped(*more_at_most),
        grouped(c.poisoned),
        grouped(c.never)
    )
}

/// Columns of a range's map.
const MAP: usize = 64;

fn ranges(bound: &Bound) -> String {
    if bound.ranges.is_empty() {
        return fitted("There is no map of blocks above 1 GiB.\n");
    }
    let mut text = fitted(
        "Every range of 1 GiB: blocks that are free, can be emptied, are poisoned, are never free; and its map, the \
         worst of some blocks in each place: . free, - can be emptied, # poisoned, x never free\n",
    );
    for range in &bound.ranges {
        let (n, c) = (range.node, &range.of_class);
        let start = short_size(range.start);
        let numbers = format!("{:>5} {:>5} {:>5} {:>5}", c.free, c.emptiable, c.poisoned, c.never);
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
