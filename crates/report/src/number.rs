//! Numbers for readers: digits grouped by thousands, and no more of them than are significant.
//!
//! Published figures keep all published digits; measured ones are means and keep four.

use kontig_text::{grouped, without_zeros};

/// A published figure, with all its digits.
pub(crate) fn exact(value: f64) -> String {
    grouped(value)
}

/// A measured figure: four significant digits, or all digits before the point if there are more.
pub(crate) fn rounded(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return "–".into();
    }
    if magnitude != 0.0 && magnitude < 0.001 {
        return format!("{value:.1e}");
    }
    grouped(trimmed(value, 4))
}

/// A change: the factor from baseline to patched.
pub(crate) fn factor(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    // Changes of a percent matter, smaller ones do not; below 1, two digits whatever the magnitude.
    let digits = match value.abs() {
        m if m >= 1e6 => format!("{value:.0e}"),
        m if m >= 100.0 => grouped(format!("{value:.0}")),
        m if m >= 10.0 => format!("{value:.1}"),
        m if m >= 0.1 || m == 0.0 => format!("{value:.2}"),
        m if m >= 0.00001 => trimmed(value, 2),
        _ => format!("{value:.0e}"),
    };
    format!("×{digits}")
}

/// How far off a change is, with one decimal below 100.
pub(crate) fn off(value: f64) -> String {
    if value >= 100.0 { format!("{}×", grouped(format!("{value:.0}"))) } else { format!("{value:.1}×") }
}

/// Rounds to `significant` digits, without trailing zeros.
fn trimmed(value: f64, significant: i32) -> String {
    let before_point = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = (significant - before_point).max(0) as usize;
    let text = format!("{value:.decimals$}");
    without_zeros(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_what_matters() {
        assert_eq!(exact(383859.0), "383,859");
        assert_eq!(exact(1666.48), "1,666.48");
        assert_eq!(rounded(1723.2914), "1,723");
        assert_eq!(rounded(17.390001), "17.39");
        assert_eq!(rounded(98.0), "98");
        assert_eq!(rounded(0.0), "0");
        assert_eq!(rounded(-1234567.8), "-1,234,568");
        assert_eq!(rounded(0.00002), "2.0e-5");
        assert_eq!(rounded(f64::NAN), "–");
    }

    #[test]
    fn changes_read_as_factors() {
        assert_eq!(factor(0.000188), "×0.00019");
        assert_eq!(factor(1.0006), "×1.00");
        assert_eq!(factor(12.34), "×12.3");
        assert_eq!(factor(15000.0), "×15,000");
        assert_eq!(factor(2.6e9), "×3e9");
        assert_eq!(off(3.21), "3.2×");
    }
}
