//! `kontig snapshot`: the use of every frame of a host, as a file.

use crate::answer::not_read;
use crate::roots::HostArgs;
use clap::Args;
use kontig_error::Error;
use kontig_error::files::{check_writable, write_file};
use kontig_live::Snapshot;
use kontig_live::frame::State;
use kontig_live::snapshot::host_page_size;
use kontig_terminal::Ending;
use kontig_text::{grouped, percent, size};
use std::path::PathBuf;

/// Options of `kontig snapshot`.
#[derive(Args)]
pub struct SnapshotArgs {
    /// File to write; without it, only a summary is printed
    #[arg(value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig snapshot                       what is where, in figures\n  \
    kontig snapshot host.snap             the same, and all of it in a file\n  \
    kontig check --need 2000x2M --snapshot host.snap\n\n\
    The file holds states and counts: no process, no file name, no address of a program.\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 5 more privilege is needed (root).";

/// Carries out `kontig snapshot`.
pub fn snapshot(a: &SnapshotArgs) -> Result<Ending, Error> {
    a.out.as_deref().map_or(Ok(()), check_writable)?;
    let snapshot = match Snapshot::take(&a.host.roots()?, host_page_size()) {
        Ok(snapshot) => snapshot,
        Err(e) => return not_read("snapshot", &e),
    };
    if let Some(path) = &a.out {
        write_file(path, snapshot.to_text().as_bytes())?;
    }
    kontig_terminal::print(&text(&snapshot))?;
    Ok(Ending::Done)
}

fn text(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    let mut text = format!("Linux {}, {} CPUs, pages of {}\n", host.kernel, host.cpus, size(host.page_size));
    for zone in &snapshot.zones {
        let census = snapshot.census(zone.frames());
        text.push_str(&format!("{}: {} managed\n", zone.title(), size(zone.managed * host.page_size)));
        for (state, pages) in State::ALL.iter().zip(census).filter(|(_, pages)| *pages > 0) {
            let inferred = matches!(state, State::Cached | State::NotManaged | State::Deferred);
            let mark = if inferred { "  (inferred)" } else { "" };
            let size = size(pages * host.page_size);
            text.push_str(&format!("  {:<36}{:>12} pages {size:>9}{mark}\n", state.words(), grouped(pages)));
        }
    }
    text.push_str(&format!(
        "Of the free memory, {} is inferred to lie in blocks of the sizes that the kernel lists.\n",
        percent(snapshot.agreement())
    ));
    text
}
