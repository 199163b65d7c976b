//! Limits of parameters that are lengths of time.

/// Durations are virtual nanoseconds in 64 bits; 31 years leave room for many.
pub(crate) const LONGEST_S: f64 = 1e9;
/// A pause is repeated after each of up to millions of operations.
pub const LONGEST_PAUSE_US: f64 = 1e9;

/// A value as it is written; `1e300`, not 301 digits.
fn short(value: f64) -> String {
    if value.is_finite() && value.abs() >= 1e15 { format!("{value:e}") } else { value.to_string() }
}

/// Checks that a value is from 0 to `most`.
///
/// # Errors
/// If not, with the value's name.
pub fn within(name: &str, value: f64, most: f64) -> Result<(), String> {
    if (0.0..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} = {} is not from 0 to {most}", short(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_far_too_large_is_said_in_a_few_digits() {
        let said = |value| within("ms", value, LONGEST_S).expect_err("refused");
        assert_eq!(said(1e300), "ms = 1e300 is not from 0 to 1000000000");
        assert_eq!(said(-2.0), "ms = -2 is not from 0 to 1000000000");
    }
}
