//! Text that all of Kontig prints and reads alike: numbers, sizes,
//! wrapped lines, tables of Markdown.
//!
//! Libraries for sizes (`bytesize`, `humansize`) print a fixed number of
//! decimals; a table needs three figures.

pub mod markdown;

use std::fmt::Display;

/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

/// Letters of the units of memory, each with its bytes.
pub const UNITS: [(&str, u64); 6] =
    [("K", 1 << 10), ("M", 1 << 20), ("G", GIB), ("T", 1 << 40), ("P", 1 << 50), ("E", 1 << 60)];

/// The mark of a percentile from fewer samples than it takes.
pub const UNRESOLVED: &str = "†";

/// The text with every control character and line break escaped, so that a message that quotes a
/// name or a file stays a line.
pub fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// A number whose digits before the point are in groups of three: `1,234,567.8`.
pub fn grouped(number: impl Display) -> String {
    let text = number.to_string();
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
    let (whole, fraction) = unsigned.split_at(unsigned.find('.').unwrap_or(unsigned.len()));
    let mut out = sign.to_string();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// An amount of memory in at most three figures: `1.15 GiB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return if bytes == 0 { "0".into() } else { format!("{bytes} B") };
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{} {}iB", without_zeros(&format!("{value:.digits$}")), UNITS[unit].0)
}

/// A decimal without the zeros at its end.
pub fn without_zeros(decimal: &str) -> &str {
    if decimal.contains('.') { decimal.trim_end_matches('0').trim_end_matches('.') } else { decimal }
}

/// A size that QEMU and the kernel's command line read, in the largest unit that
/// divides it: `2M`, `1G`, `64K`.
pub fn short_size(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(letter, unit)| format!("{}{letter}", bytes / unit))
}

/// Reads a size: `512 GiB`, `64MiB`, `1.5 TiB`, or a plain number of bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    let factor = match unit {
        "" | "B" => 1,
        _ => unit_of(unit.strip_suffix("iB")?)?,
    };
    let n: f64 = number.parse().ok()?;
    (n.is_finite() && n >= 0.0).then_some((n * factor as f64) as u64)
}

/// The bytes of a unit, by its letter.
pub fn unit_of(letter: &str) -> Option<u64> {
    UNITS.iter().find(|(name, _)| *name == letter).map(|(_, bytes)| *bytes)
}

/// Converts bytes to GiB.
pub fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB as f64
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p == 0.0 || p >= 9.95 => format!("{p:.0} %"),
        p => format!("{p:.1} %"),
    }
}

/// A time in its two largest units.
pub fn time(seconds: f64) -> String {
    let s = seconds as u64;
    match (s / 86_400, s / 3600 % 24, s / 60 % 60) {
        (0, 0, 0) if seconds < 10.0 => format!("{seconds:.1} s"),
        (0, 0, 0) => format!("{s} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", s % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// A text after a head that is printed as it is, in lines of at most `width` columns, those after
/// the first indented. A longer word has a line of its own.
pub fn wrap(head: &str, text: &str, indent: usize, width: usize) -> String {
    if text.is_empty() {
        return format!("{head}\n");
    }
    let indent = " ".repeat(indent);
    let options = textwrap::Options::new(width)
        .initial_indent(head)
        .subsequent_indent(&indent)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(text, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_figures_at_most() {
        let sizes = [0, 512, 4096, 15 << 20, 1_234_567_890, 20_227_248_128, 1 << 40];
        let texts = ["0", "512 B", "4 KiB", "15 MiB", "1.15 GiB", "18.8 GiB", "1 TiB"];
        assert_eq!(sizes.map(size), texts);
        assert_eq!([0.0, 0.0123, 0.5, 1.0].map(percent), ["0 %", "1.2 %", "50 %", "100 %"]);
        assert_eq!(
            [0.25, 42.0, 65.0, 3700.0, 90_000.0].map(time),
            ["0.2 s", "42 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]
        );
    }

    #[test]
    fn digits_are_grouped_before_the_point_only() {
        assert_eq!([0, 999, 1000, 1_251_603].map(grouped), ["0", "999", "1,000", "1,251,603"]);
        assert_eq!([-1234.5678, -123.0, 1e6].map(grouped), ["-1,234.5678", "-123", "1,000,000"]);
        assert_eq!(grouped("12345.60"), "12,345.60");
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("4 GiB"), Some(4 << 30));
        assert_eq!(parse_size("1.5MiB"), Some(3 << 19));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!([parse_size("4 GB"), parse_size("4 G"), parse_size("-1 GiB")], [None; 3]);
    }

    #[test]
    fn short_sizes_lose_nothing() {
        let sizes = [512, 64 << 10, 3 << 19, 2 << 20, 1 << 30, 1 << 40];
        assert_eq!(sizes.map(short_size), ["512", "64K", "1536K", "2M", "1G", "1T"]);
    }

    #[test]
    fn lines_are_as_wide_as_they_may_be_and_no_wider() {
        assert_eq!(wrap("", "a bc def gh", 2, 6), "a bc\n  def\n  gh\n");
        assert_eq!(wrap("  name  ", "is what it is", 8, 13), "  name  is\n        what\n        it is\n");
        assert_eq!(wrap("", "a §§§ b", 0, 5), "a §§§\nb\n");
        assert_eq!(wrap("", "incomprehensible a", 2, 6), "incomprehensible\n  a\n");
        assert_eq!(wrap("  name  ", "", 8, 20), "  name  \n");
    }

    #[test]
    fn whatever_breaks_a_line_is_escaped_and_all_else_stays() {
        assert_eq!(one_line("a\nb\r\u{2028}ä\t\u{85}"), "a\\nb\\r\\u{2028}ä\\t\\u{85}");
    }
}
