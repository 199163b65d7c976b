//! Named counters in the kernel's order.

/// Counters in the order of their file. A name that the crate does not know is kept like any other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters(Vec<(String, u64)>);

impl Counters {
    /// The counter of this name, if the kernel lists one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }

    /// Adds a counter at the end.
    pub fn push(&mut self, name: impl Into<String>, value: u64) {
        self.0.push((name.into(), value));
    }

    /// Names and values in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// The names in the file's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The same names with other values.
    pub fn with(&self, value: impl Fn(&str) -> u64) -> Counters {
        self.names().map(|name| (name.to_string(), value(name))).collect()
    }

    /// Whether there are no counters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, u64)> for Counters {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(counters: I) -> Counters {
        Counters(counters.into_iter().collect())
    }
}
