//! A period in words: what the terminal and the page both say.

use super::at::clock;
use super::count::{Count, ROWS, Row, Source};
use super::period::Summary;
use kontig_text::{grouped, percent, size, time};

/// The period, and its kernel.
pub fn heading(s: &Summary) -> String {
    let kernel = s.kernel.as_deref().map_or(String::new(), |kernel| format!("Linux {kernel}: "));
    if s.samples == 1 {
        return format!("{kernel}one sample, of {} UTC", clock(s.from_unix_ms));
    }
    format!(
        "{kernel}{} to {} UTC, {} samples over {}",
        clock(s.from_unix_ms),
        clock(s.to_unix_ms),
        grouped(s.samples),
        time(s.seconds)
    )
}

/// The answer, the most important first.
pub fn conclusion(s: &Summary) -> Vec<String> {
    let mut said = Vec::new();
    let block = s.huge_page_bytes.map_or("huge pages".into(), |bytes| format!("huge pages of {}", size(bytes)));
    match (s.at_hand, s.fewest_at_unix_ms) {
        (Some(n), _) if s.samples == 1 => said.push(format!(
            "Requests got {} {block} at once. One sample tells no rate, no share of the time and no change.",
            grouped(n.least)
        )),
        (Some(n), Some(at)) => said.push(format!(
            "In half of the samples, requests got {} {block} or more at once; the fewest were {}, at {}.",
            grouped(n.quartiles.median.floor() as u64),
            grouped(n.least),
            clock(at)
        )),
        _ => said.push("It is not known how many huge pages requests got at once.".into()),
    }
    if let Some(waited) = s.rates.of(Count::WaitedForCompaction) {
        let reclaim =
            s.rates.of(Count::WaitedForReclaim).map_or(String::new(), |n| format!(", {} for reclaim", rate(n)));
        said.push(format!("Requests waited {} times an hour for compaction{reclaim}.", rate(waited)));
    }
    match (s.refused_share, s.rates.of(Count::Given)) {
        (Some(share), _) => said.push(format!("{} of the first touches were refused a huge page.", share_of(share))),
        (None, Some(_)) => said.push("No first touch asked for a huge page.".into()),
        _ => {}
    }
    if let Some(share) = s.rates.of(Count::SomeWaited) {
        said.push(format!("Some task waited for memory {} of the time.", share_of(share)));
    }
    if s.damage.is_any() {
        said.push(format!("Of the file {}.", s.damage));
    }
    said
}

/// The sentence where no change was seen.
pub fn no_change(s: &Summary) -> &'static str {
    match s.samples {
        1 => "One sample shows no change.",
        _ => "Nothing changed: one boot, one clock, the same settings throughout.",
    }
}

/// The prices: who paid, for what, and how much.
pub fn paid(s: &Summary) -> Vec<(String, &'static str, String)> {
    let much = |row: &Row, n: f64| match row.source {
        Source::Counter(_) => format!("{} an hour", rate(n)),
        Source::Pressure(_) => share_of(n) + " of the time",
        Source::Thread(_) => share_of(n) + " of a CPU",
    };
    let price = |row: &Row| {
        let (who, what) = row.told?.paid?;
        Some((who.to_string(), what, much(row, s.rates.of(row.count)?)))
    };
    ROWS.iter().filter_map(price).collect()
}

/// Where no group went through anything.
pub const NO_GROUPS: &str = "No control group waited for memory or reached a limit, as far as the kernel counts that: \
    waiting by group takes PSI and version 2.";

/// A number per hour.
fn rate(n: f64) -> String {
    match n > 0.0 && n < 9.95 {
        true => format!("{n:.1}"),
        false => grouped(n.round() as u64),
    }
}

fn share_of(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { "less than 0.1 %".into() } else { percent(share) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::file::Damage;
    use crate::history::{Period, Point};

    #[test]
    fn one_sample_tells_no_rate() {
        let mut period = Period {
            points: vec![Point::of(&Default::default())],
            changes: Vec::new(),
            damage: Damage::default(),
            settings: Default::default(),
            kernel: None,
            huge_page_bytes: Some(2 << 20),
        };
        period.points[0].nodes =
            vec![crate::history::point::NodePoint { node: 0, at_hand: Some(70), score: None, free_bytes: 0 }];
        let summary = period.summary();
        let said = "Requests got 70 huge pages of 2 MiB at once. One sample tells no rate, no share of the time and no \
                    change.";
        assert_eq!(conclusion(&summary), [said]);
        assert_eq!(heading(&summary), "one sample, of 1970-01-01 00:00:00 UTC");
        assert!(paid(&summary).is_empty() && no_change(&summary).starts_with("One sample"));
    }
}
