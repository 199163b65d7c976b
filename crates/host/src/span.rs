//! Spans of time on the command line, the same for every command: `10` is seconds, and `500ms`,
//! `2min` or `1h 30min` name their units.

use std::time::Duration;

/// The longest span that anybody may ask for: ten years.
const MOST: Duration = Duration::from_secs(3650 * 86_400);

/// Parses a span from `least` to `most`.
pub fn within(
    least: Duration,
    most: Duration,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let [from, to] = [least, most].map(humantime::format_duration);
        parsed(text)
            .filter(|span| (least..=most).contains(span))
            .ok_or_else(|| format!("expected a time from {from} to {to}: 10 (seconds), 500ms, 2min"))
    }
}

fn parsed(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.or_else(|| humantime::parse_duration(text).ok())
}

/// Parses a span of no less than this.
pub fn from(least: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let least_text = humantime::format_duration(least);
        parsed(text)
            .filter(|span| (least..=MOST).contains(span))
            .ok_or_else(|| format!("expected a time of {least_text} or more: 10 (seconds), 500ms, 2min"))
    }
}

/// Parses a span of whole seconds, no less than these.
pub fn seconds(least: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    let parse = from(Duration::from_secs(least));
    move |text| {
        let span = parse(text)?;
        (span.subsec_nanos() == 0).then_some(span.as_secs()).ok_or_else(|| "expected whole seconds".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_seconds_and_a_unit_is_understood() {
        let parse = within(Duration::from_millis(10), Duration::from_secs(3600));
        for (text, ms) in [("10", 10_000), ("0.5", 500), ("10s", 10_000), ("500ms", 500), ("1min 5s", 65_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "-1", "0", "2h", "NaN", "inf", "1e300", "ten"] {
            assert_eq!(parse(text), Err("expected a time from 10ms to 1h: 10 (seconds), 500ms, 2min".into()), "{text}");
        }
        assert_eq!((seconds(1)("2min"), seconds(1)("1.5").is_err()), (Ok(120), true));
    }
}
