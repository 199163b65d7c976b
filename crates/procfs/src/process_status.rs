//! `/proc/PID/status`: what a process is, a line `Name:` and a text for each thing.
//!
//! The file is parsed only. A process's name has its line feeds written as `\n`, so each thing is one line.

use crate::error::BadText;
use crate::lines::Lines;

/// The file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessStatus {
    /// Names and texts, in order.
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

    /// What stands behind this name, if the kernel lists it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}
