//! Sizes of memory as people write them.

/// Reads a size such as `512 GiB`, `64MiB`, `1.5 TiB` or a plain number of bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    let n: f64 = number.parse().ok()?;
    (n.is_finite() && n >= 0.0).then_some((n * factor as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("4 GiB"), Some(4 << 30));
        assert_eq!(parse_size("1.5MiB"), Some(3 << 19));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("4 GB"), None);
        assert_eq!(parse_size("-1 GiB"), None);
    }
}
