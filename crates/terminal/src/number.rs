//! Numbers on the command line. A refusal names the valid range; clap adds the option.

use clap::Command;
use std::ops::RangeInclusive;

/// The largest count, in 32 bits.
pub const MOST: u64 = u32::MAX as u64;

/// Parses a whole number in this range.
pub fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number =
            text.parse().ok().filter(|number| range.contains(number)).and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Parses a number in this range. `unit` is for the message.
pub fn fraction(text: &str, range: RangeInclusive<f64>, unit: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a number of {unit} from {} to {}", range.start(), range.end()))
}

/// Lets options take a negative number as their value, so that the refusal is about the value and
/// not about an unknown option.
pub fn take_negative(command: Command) -> Command {
    let is_option = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command = command.mut_args(|arg| if is_option(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(take_negative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_range_are_refused_with_the_range() {
        let seven = whole::<u8>(1..=300);
        assert_eq!(seven("7"), Ok(7));
        for text in ["0", "-1", "", "x", "301", "299", "1.5"] {
            assert_eq!(seven(text), Err("expected a whole number from 1 to 300".into()), "{text}");
        }
        let gib = |text: &str| fraction(text, 0.001..=65_536.0, "GiB");
        assert_eq!(gib("0.5"), Ok(0.5));
        for text in ["0", "-1", "", "NaN", "inf", "70000"] {
            assert_eq!(gib(text), Err("expected a number of GiB from 0.001 to 65536".into()), "{text}");
        }
    }
}
