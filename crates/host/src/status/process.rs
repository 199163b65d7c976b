//! `kontig status --pid`: a process, mapping by mapping.

use super::{StatusArgs, Text};
use kontig_error::{AskedWrongly, Error};
use kontig_live::process::{Files, Process};
use kontig_live::{Host, Roots};
use kontig_terminal::Grid;
use kontig_terminal::wrap;
use kontig_text::{percent, size};

/// The text of `kontig status --pid`.
pub(super) fn text(a: &StatusArgs, roots: &Roots, host: &Host, pid: u32) -> Result<Text, Error> {
    let files = match Files::read(roots, pid) {
        Err(e) if e.is_missing() => {
            return Err(AskedWrongly::Value(format!("--pid {pid}: there is no such process")).into());
        }
        Err(e) => return Ok(Err(e)),
        Ok(files) => files,
    };
    let process = Process::of(host, pid, &files);
    Ok(Ok(a.page(&process, |width| page(&process, width))))
}

/// Number of mappings shown.
const SHOWN: usize = 12;

fn page(p: &Process, width: Option<usize>) -> String {
    let wrapped = |head: &str, text: &str, indent| wrap(head, text, indent, width.unwrap_or(100).min(100));
    let name = p.name.as_deref().unwrap_or("a process without a name");
    if p.mappings.is_empty() {
        return wrapped("", &format!("{name} (pid {}) has no memory of its own: it belongs to the kernel", p.pid), 0);
    }
    let share = if p.resident_bytes == 0 { 0.0 } else { p.huge_bytes as f64 / p.resident_bytes as f64 };
    let of = p.huge_page_bytes.map_or(String::new(), |bytes| format!(" of {}", size(bytes)));
    let swapped = if p.swapped_bytes > 0 { format!(", {} swapped out", size(p.swapped_bytes)) } else { String::new() };
    let head = format!(
        "{name} (pid {}) has {} in memory{swapped}; {} of it ({}) in huge pages{of}",
        p.pid,
        size(p.resident_bytes),
        size(p.huge_bytes),
        percent(share)
    );
    let mut text = wrapped("", &head, 0);
    let of_sizes =
        p.folios.iter().flatten().map(|of| format!("{} of {}", size(of.resident_bytes), size(of.folio_bytes)));
    let folios = match &p.folios {
        None => "root is told (/proc/PID/pagemap, /proc/kpageflags)".to_string(),
        Some(_) => of_sizes.collect::<Vec<_>>().join(", "),
    };
    text += &wrapped("In folios, by their size: ", &folios, 2);
    if !p.reasons.is_empty() {
        text += "\nIn small pages, and why\n";
        for sum in &p.reasons {
            let most = match sum.could_be_huge_bytes {
                most if most == sum.bytes => String::new(),
                0 => " (in mappings without a whole huge page: none of it could be huge)".into(),
                most => format!(" ({} of it at most could be huge, by the bounds of the mappings)", size(most)),
            };
            text += &wrapped(&format!("  {:>8}  ", size(sum.bytes)), &format!("{}{most}", sum.text), 12);
        }
    }
    text += &wrapped("\n", "Mappings, those with the most memory in small pages first", 0);
    let mut grid = Grid::new(["from", "size", "in memory", "huge", "can be huge", "of"], &[0, 5]);
    let in_memory = || p.mappings.iter().filter(|m| m.resident_bytes > 0);
    for m in in_memory().take(SHOWN) {
        grid.row(vec![
            m.start.clone(),
            size(m.size_bytes),
            size(m.resident_bytes),
            size(m.huge_bytes),
            size(m.aligned_bytes),
            if m.name.is_empty() { "–".into() } else { m.name.clone() },
        ]);
    }
    text += &grid.text(2, width);
    match in_memory().count().saturating_sub(SHOWN) {
        0 => text,
        more => text + &wrapped("  ", &format!("and {more} more (--json has all)"), 2),
    }
}
