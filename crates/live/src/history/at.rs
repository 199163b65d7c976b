//! A moment of a history, as people name it: `-3h`, `2026-11-26 16:48`, `first`, `last`.
//!
//! A span is counted back from the last sample and not from now: so the same file gives the same
//! answer whenever it is asked. Times are UTC.

use std::time::{Duration, UNIX_EPOCH};

/// A moment of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    First,
    Last,
    /// Milliseconds before the last sample.
    Before(i64),
    /// A time, in milliseconds since 1970.
    Unix(i64),
}

/// The forms of a moment, for messages.
const FORMS: &str = "-3h (before the last sample), 2026-11-26T16:48:00Z, first or last";

impl At {
    /// Reads a moment.
    ///
    /// # Errors
    /// What it should look like.
    pub fn parse(text: &str) -> Result<At, String> {
        let form = || format!("'{text}' is no moment of a history: say {FORMS}");
        match text {
            "first" => return Ok(At::First),
            "last" => return Ok(At::Last),
            _ => {}
        }
        if let Some(span) = text.strip_prefix('-') {
            let span = humantime::parse_duration(span).map_err(|_| form())?;
            return i64::try_from(span.as_millis()).map(At::Before).map_err(|_| form());
        }
        // Without seconds, the minute begins.
        let with_seconds = format!("{text}:00");
        let time = humantime::parse_rfc3339_weak(text).or_else(|_| humantime::parse_rfc3339_weak(&with_seconds));
        let since_1970 = time.map_err(|_| form())?.duration_since(UNIX_EPOCH).map_err(|_| form())?;
        i64::try_from(since_1970.as_millis()).map(At::Unix).map_err(|_| form())
    }

    /// The moment on the clock of a history with these samples first and last.
    pub fn unix_ms(self, first: i64, last: i64) -> i64 {
        match self {
            At::First => first,
            At::Last => last,
            At::Before(ms) => last.saturating_sub(ms),
            At::Unix(ms) => ms,
        }
    }
}

/// A time as people read it: `2026-11-26 16:48:05`, UTC.
pub fn clock(unix_ms: i64) -> String {
    let ms = u64::try_from(unix_ms).unwrap_or(0);
    // The last second that the library writes is of the year 9999.
    let time = UNIX_EPOCH + Duration::from_millis(ms.min(253_402_300_799_000));
    humantime::format_rfc3339_seconds(time).to_string().replace('T', " ").trim_end_matches('Z').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_so_long_before_the_last_sample() {
        let at = |text: &str| At::parse(text).map(|at| at.unix_ms(1_000, 1_795_711_685_000));
        assert_eq!(at("last"), Ok(1_795_711_685_000));
        assert_eq!(at("-1h 5s"), Ok(1_795_711_685_000 - 3_605_000));
        assert_eq!(at("first"), Ok(1_000));
        assert_eq!(at("2026-11-26 16:48").map(clock), Ok("2026-11-26 16:48:00".into()));
        assert_eq!(at("2026-11-26T16:48:05Z").map(clock), Ok("2026-11-26 16:48:05".into()));
        for bad in ["", "-", "-3", "yesterday", "1969-01-01 00:00", "3h"] {
            let said = At::parse(bad).expect_err(bad);
            assert!(said.starts_with(&format!("'{bad}' is no moment")), "{said}");
        }
    }
}
