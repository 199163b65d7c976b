//! A text as one line: what someone chose as a name, or wrote into a file, may hold anything, and a
//! message that quotes it stays a line.

/// The text with every control character and line break escaped.
pub fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_breaks_a_line_is_escaped_and_all_else_stays() {
        assert_eq!(one_line("a\nb\r\u{2028}ä\t\u{85}"), "a\\nb\\r\\u{2028}ä\\t\\u{85}");
    }
}
