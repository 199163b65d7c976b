//! A Java heap of small objects that are found one through the other.

use super::held::{Held, Timed, written};
use super::run::steady;
use crate::translation::measured::Measured;
use kontig_program::Pattern;
use std::path::Path;
use std::process::Command;

const ENTRIES: u64 = 12_000_000;
/// Lookups of a round, and rounds.
const LOOKUPS: u64 = 6_000_000;
const ROUNDS: u64 = 4;

pub(super) fn hold(dir: &Path, m: &Measured) -> Result<Held, String> {
    let source = written(dir, "Lookups.java", include_str!("../../../programs/Lookups.java"))?;
    let timed = Timed::by_turns(|huge| {
        let pages = if huge { "-XX:+UseTransparentHugePages" } else { "-XX:-UseTransparentHugePages" };
        let mut command = Command::new("java");
        command.args([pages, "-XX:+UseSerialGC", "-Xms3g", "-Xmx3g", "-XX:+AlwaysPreTouch"]).arg(&source);
        steady(command.args([ENTRIES, LOOKUPS, ROUNDS].map(|count| count.to_string())))
    })?;
    // A slot of 4 bytes in a table of 2^24; a node of 32 bytes; its key and its value, of 16 bytes
    // each. The collector copies the nodes, and then the key and the value of each side by side.
    let (slots, objects) = (4 << 24, 64 * ENTRIES);
    let saved_ns = |bytes| timed.saved_ns(m, Pattern::Chase, bytes);
    let of_lookup = saved_ns(slots) + 2.0 * saved_ns(objects);
    let known = format!(
        "{LOOKUPS} lookups that wait: a slot of 64 MiB, then a node, then its key and value, of {} MiB",
        objects >> 20
    );
    Ok(timed.beside(known, of_lookup * LOOKUPS as f64 / 1e9))
}
