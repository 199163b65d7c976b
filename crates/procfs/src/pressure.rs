//! `/proc/pressure/memory` and its siblings: how long tasks were stalled for lack of a resource.
//!
//! One line each for `some` (at least one task waits) and `full` (all tasks wait): the share of the
//! last 10, 60 and 300 seconds in percent, and the total in microseconds. `cpu` had no `full`
//! before 5.13; `irq` has no `some`.

use crate::error::BadText;
use crate::lines::{Line, Lines};
use std::fmt;

/// The contents of a pressure file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    pub stalls: Vec<Stall>,
}

/// How long tasks were stalled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// Either `some` or `full`.
    pub who: String,
    /// The stalled share of each window that the kernel keeps.
    pub averages: Vec<Average>,
    /// Total since boot, in microseconds.
    pub total_us: u64,
}

/// The stalled share of one window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Average {
    /// The length of the window.
    pub seconds: u32,
    /// The share in hundredths of a percent.
    pub share: u32,
}

impl Pressure {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(file: &str, text: &str) -> Result<Pressure, BadText> {
        Ok(Pressure { stalls: Lines::of(file, text)?.map(|line| stall(&line)).collect::<Result<_, BadText>>()? })
    }

    /// The stalls of `some` or `full`, if the kernel lists them.
    pub fn stall(&self, who: &str) -> Option<&Stall> {
        self.stalls.iter().find(|s| s.who == who)
    }
}

impl Stall {
    /// The stalled share of the last `seconds`, in hundredths of a percent, if the kernel keeps it.
    pub fn share(&self, seconds: u32) -> Option<u32> {
        self.averages.iter().find(|a| a.seconds == seconds).map(|a| a.share)
    }
}

fn stall(line: &Line<'_>) -> Result<Stall, BadText> {
    let form = || line.expected("'some' or 'full' with 'avgSECONDS=PERCENT ... total=MICROSECONDS'");
    let (who, rest) = line.text.split_once(' ').ok_or_else(form)?;
    let (averages, total) = rest.rsplit_once(' ').ok_or_else(form)?;
    let average = |field: &str| {
        let (seconds, percent) = field.strip_prefix("avg").and_then(|f| f.split_once('=')).ok_or_else(form)?;
        let (whole, hundredths) = percent.split_once('.').filter(|(_, h)| h.len() == 2).ok_or_else(form)?;
        let (whole, hundredths): (u16, u8) = (line.number(whole)?, line.number(hundredths)?);
        Ok(Average { seconds: line.number(seconds)?, share: u32::from(whole) * 100 + u32::from(hundredths) })
    };
    Ok(Stall {
        who: who.into(),
        averages: averages.split(' ').map(average).collect::<Result<_, BadText>>()?,
        total_us: line.number(total.strip_prefix("total=").ok_or_else(form)?)?,
    })
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stalls.iter().try_for_each(|stall| {
            write!(f, "{}", stall.who)?;
            for Average { seconds, share } in &stall.averages {
                write!(f, " avg{seconds}={}.{:02}", share / 100, share % 100)?;
            }
            writeln!(f, " total={}", stall.total_us)
        })
    }
}
