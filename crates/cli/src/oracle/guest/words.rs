//! Figures in words: a mean with its range, and a verdict.

use kontig_oracle::guest::compare::{Spread, Verdict};

/// A mean with the least and the most; figures below 1000 with a decimal, where they have one.
pub(super) fn figure(s: Spread) -> String {
    let digits = |v: f64| if v < 1000.0 && v.fract() != 0.0 { format!("{v:.1}") } else { format!("{v:.0}") };
    if s.least == s.most {
        return digits(s.mean);
    }
    format!("{} [{}..{}]", digits(s.mean), digits(s.least), digits(s.most))
}

/// A verdict's word, in bold where a reader is to look.
pub(super) fn marked(verdict: Verdict) -> &'static str {
    if verdict == Verdict::Outside { "**outside**" } else { verdict.word() }
}
