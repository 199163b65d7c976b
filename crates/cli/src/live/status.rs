//! `kontig status`: what a host's memory is like, once or again and again.

mod text;

use super::host::HostArgs;
use super::not_read;
use crate::Ending;
use clap::Args;
use kontig_lab::{AskedWrongly, LabError};
use kontig_live::{Host, Status};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// `kontig status`.
#[derive(Args)]
pub struct StatusArgs {
    /// See blocks of this size instead of the huge page's: as 32M, 1G, 64K, or an order as order13
    #[arg(long, value_name = "SIZE|orderN")]
    block: Option<String>,
    /// Show every order of the free lists
    #[arg(long)]
    orders: bool,
    /// Wait so many seconds, and say what happened meanwhile
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Duration>,
    /// Go on until Ctrl-C, once every interval (2 seconds if none is given)
    #[arg(long)]
    watch: bool,
    /// Print JSON (schema kontig.status/1): one document, or with --watch one a line
    #[arg(long)]
    json: bool,
    /// Which host.
    #[command(flatten)]
    host: HostArgs,
}

/// What --help says behind the options.
pub const HELP: &str = "Examples:\n  \
    kontig status\n  \
    kontig status --block 32M --orders\n  \
    kontig status --interval 10           what happened in ten seconds\n  \
    kontig status --watch --json          one line of JSON every two seconds\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly; 5 more privilege is needed.";

/// Runs `kontig status`.
pub fn status(a: &StatusArgs) -> Result<Ending, LabError> {
    let roots = a.host.roots()?;
    let block = a.block.as_deref().map(|text| Block::parse(text).ok_or_else(|| bad_block(text))).transpose()?;
    if a.watch {
        // To be stopped is how watching ends.
        crate::interrupt::act(|| std::process::exit(0));
    }
    let mut before: Option<(Host, Instant)> = None;
    loop {
        let interval = a.interval.or((a.watch && before.is_some()).then_some(Duration::from_secs(2)));
        if let Some(interval) = interval {
            before.get_or_insert_with(|| (Host::read(&roots), Instant::now()));
            std::thread::sleep(interval);
        }
        let host = Host::read(&roots);
        let at = Instant::now();
        let since = before.as_ref().map(|(host, then)| (host, at.duration_since(*then).as_secs_f64()));
        let order = block.zip(host.page_size).map(|(block, page)| block.order(page.bytes)).transpose()?;
        match Status::of(&host, order, since) {
            Ok(status) => crate::print(&page(a, &status))?,
            Err(e) => return not_read("status", &e),
        }
        if !a.watch {
            return Ok(Ending::Done);
        }
        before = Some((host, at));
    }
}

fn page(a: &StatusArgs, status: &Status) -> String {
    if a.json && a.watch {
        return format!("{}\n", as_json(status));
    }
    if a.json {
        return format!("{:#}\n", as_json(status));
    }
    let text = text::text(status, a.orders, crate::wrap::columns());
    match (a.watch, std::io::stdout().is_terminal()) {
        (false, _) => text,
        (true, true) => format!("\x1b[H\x1b[2J{text}"),
        (true, false) => format!("{text}\n"),
    }
}

fn as_json(status: &Status) -> serde_json::Value {
    // Every field is a number, a text or a list of such.
    serde_json::to_value(status).unwrap_or_default()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("'{text}' is no number of seconds"))?;
    if !(0.01..=86_400.0).contains(&seconds) {
        return Err("an interval is between 0.01 and 86400 seconds".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A block as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Block {
    Bytes(u64),
    Order(u32),
}

/// The largest order that makes sense: 2 TiB of the smallest pages.
const MAX_ORDER: u32 = 29;

impl Block {
    fn parse(text: &str) -> Option<Block> {
        if let Some(order) = text.strip_prefix("order") {
            return order.parse().ok().filter(|order| *order <= MAX_ORDER).map(Block::Order);
        }
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let shift = match unit {
            "K" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            _ => return None,
        };
        let number: u64 = number.parse().ok()?;
        number.checked_mul(1 << shift).filter(|bytes| bytes.is_power_of_two()).map(Block::Bytes)
    }

    fn order(self, page_bytes: u64) -> Result<u32, LabError> {
        match self {
            Block::Order(order) => Ok(order),
            Block::Bytes(bytes) => {
                let pages = bytes / page_bytes;
                if !pages.is_power_of_two() || pages.trailing_zeros() > MAX_ORDER {
                    let page = super::number::size(page_bytes);
                    let text = format!("--block: this host's pages are of {page}; ask for 2 to 2^{MAX_ORDER} of them");
                    return Err(AskedWrongly::Value(text).into());
                }
                Ok(pages.trailing_zeros())
            }
        }
    }
}

fn bad_block(text: &str) -> LabError {
    let said =
        format!("--block {text}: write a size that is a power of two, as 64K, 32M or 1G, or an order, as order13");
    AskedWrongly::Value(said).into()
}

#[cfg(test)]
mod tests {
    use super::Block;

    #[test]
    fn a_block_is_a_size_or_an_order() {
        assert_eq!(Block::parse("32M"), Some(Block::Bytes(32 << 20)));
        assert_eq!(Block::parse("1GiB"), Some(Block::Bytes(1 << 30)));
        assert_eq!(Block::parse("order13"), Some(Block::Order(13)));
        for wrong in ["", "3M", "32", "M", "order", "order99", "2T", "99999999999999999999G"] {
            assert_eq!(Block::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Block::Bytes(2 << 20).order(65_536).ok(), Some(5));
        assert!(Block::Bytes(4096).order(65_536).is_err());
    }
}
