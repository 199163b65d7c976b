//! `/proc/meminfo`: the machine's memory by use, in kB; numbers of huge pages have no unit.
//!
//! Values end in column 24. After names of up to fifteen characters they are eight wide; after
//! longer ones, and for numbers of huge pages, five wide.

use crate::error::BadText;
use crate::lines::{Line, Lines};
use std::fmt;

/// The contents of `/proc/meminfo`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemInfo {
    pub fields: Vec<Field>,
}

/// A line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name, for example `MemTotal` or `AnonHugePages`.
    pub name: String,
    pub value: Value,
}

/// A value with its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// An amount in KiB, which the kernel calls `kB`.
    Kb(u64),
    /// A number of huge pages.
    Pages(u64),
}

impl MemInfo {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not a name and a value.
    pub fn parse(file: &str, text: &str) -> Result<MemInfo, BadText> {
        Ok(MemInfo {
            fields: Lines::of(file, text)?.map(|line| field(&line, line.text)).collect::<Result<_, BadText>>()?,
        })
    }

    /// A field in KiB, if the kernel lists it.
    pub fn kb(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Kb(kb) => Some(kb),
            Value::Pages(_) => None,
        }
    }

    /// A number of huge pages, if the kernel lists it.
    pub fn pages(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Pages(pages) => Some(pages),
            Value::Kb(_) => None,
        }
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|f| f.name == name).map(|f| f.value)
    }
}

/// Parses a name and a value from a line or its rest.
pub(crate) fn field(line: &Line<'_>, text: &str) -> Result<Field, BadText> {
    let Some((name, value)) = text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
        return Err(line.expected("a name and a value"));
    };
    let value = match value.trim_start().split_once(' ') {
        Some((kb, "kB")) => Value::Kb(line.number(kb)?),
        Some((_, unit)) => return Err(line.bad(format!("unknown unit '{unit}'"))),
        None => Value::Pages(line.number(value.trim_start())?),
    };
    Ok(Field { name: name.into(), value })
}

impl fmt::Display for MemInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields.iter().try_for_each(|field| {
            let label = format!("{}:", field.name);
            match field.value {
                Value::Kb(kb) if label.len() <= 16 => writeln!(f, "{label:<16}{kb:>8} kB"),
                Value::Kb(kb) => writeln!(f, "{label:<19}{kb:>5} kB"),
                Value::Pages(pages) => writeln!(f, "{label:<19}{pages:>5}"),
            }
        })
    }
}
