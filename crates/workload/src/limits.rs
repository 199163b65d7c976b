//! Limits of parameters that are lengths of time.

/// Durations are virtual nanoseconds in 64 bits; 31 years leave room for many.
pub(crate) const LONGEST_S: f64 = 1e9;
/// A pause is repeated after each of up to millions of operations.
pub const LONGEST_PAUSE_US: f64 = 1e9;

/// Checks that a value is from 0 to `most`.
///
/// # Errors
/// If not, with the value's name.
pub fn within(name: &str, value: f64, most: f64) -> Result<(), String> {
    if (0.0..=most).contains(&value) { Ok(()) } else { Err(format!("{name} = {value} is not from 0 to {most}")) }
}
