//! `/proc/PID/status`: the state of a process, one line `Name:` and text per field.
//!
//! The file is parsed only. Line feeds in a process's name are written as `\n`, so each field is
//! one line.

use crate::error::BadText;
use crate::lines::Lines;

/// The contents of `/proc/PID/status`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessStatus {
    /// Names and texts in the file's order.
    pub fields: Vec<(String, String)>,
}

impl ProcessStatus {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line without a colon.
    pub fn parse(file: &str, text: &str) -> Result<ProcessStatus, BadText> {
        let mut fields = Vec::new();
        for line in Lines::of(file, text)? {
            let Some((name, value)) = line.text.split_once(':') else {
                return Err(line.expected("a name and a value"));
            };
            fields.push((name.to_string(), value.trim().to_string()));
        }
        Ok(ProcessStatus { fields })
    }

    /// The text of the field with this name, if the kernel lists it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}
