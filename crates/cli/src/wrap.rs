//! Text in lines that fit the terminal, 80 columns where there is none to ask.

/// Columns to fill: the terminal's, as far as lines stay readable.
pub fn width() -> usize {
    columns().unwrap_or(80).clamp(60, 100)
}

/// The terminal's columns; none where there is no terminal.
pub fn columns() -> Option<usize> {
    // One that is told its columns only has no lines.
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// A text after a head that stays as it is, in lines of at most `width` columns, those after the first indented; a longer
/// word has a line of its own.
pub fn wrap(head: &str, text: &str, indent: usize, width: usize) -> String {
    let mut out = head.to_string();
    let mut column = head.chars().count();
    let mut begins = true;
    for word in text.split(' ') {
        let length = word.chars().count();
        if !begins && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if !begins {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        begins = false;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_are_as_wide_as_they_may_be_and_no_wider() {
        assert_eq!(wrap("", "a bc def gh", 2, 6), "a bc\n  def\n  gh\n");
        assert_eq!(wrap("  name  ", "is what it is", 8, 13), "  name  is\n        what\n        it is\n");
        assert_eq!(wrap("", "a §§§ b", 0, 5), "a §§§\nb\n");
        assert_eq!(wrap("", "incomprehensible a", 2, 6), "incomprehensible\n  a\n");
    }
}
