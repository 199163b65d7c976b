//! Ranges of kernel releases: `5.9-`, `4.6-6.14`, both ends included.

/// A range; no last one means all later kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernels {
    first: Vec<u32>,
    last: Option<Vec<u32>>,
}

impl Kernels {
    /// Reads a range of releases.
    pub fn parse(text: &str) -> Option<Kernels> {
        let (first, last) = text.split_once('-')?;
        let numbers = |text: &str| text.split('.').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>();
        Some(Kernels { first: numbers(first)?, last: if last.is_empty() { None } else { Some(numbers(last)?) } })
    }

    /// Whether a release is in it: `6.12.107+deb13-cloud-amd64` is of 6.12. None if it does not
    /// begin with a version.
    pub fn contains(&self, release: &str) -> Option<bool> {
        let version = release.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let version: Vec<u32> = version.split('.').map_while(|n| n.parse().ok()).collect();
        if version.len() < 2 {
            return None;
        }
        // A last one of two numbers includes all releases that begin with them.
        let until = |last: &Vec<u32>| version[..version.len().min(last.len())] <= last[..];
        Some(version >= self.first && self.last.as_ref().is_none_or(until))
    }
}

#[cfg(test)]
mod tests {
    use super::Kernels;

    #[test]
    fn releases_are_in_a_range_by_their_numbers() {
        let open = Kernels::parse("5.9-").expect("a range");
        assert_eq!(open.contains("6.12.107+deb13-cloud-amd64"), Some(true));
        assert_eq!(
            (open.contains("5.10.0-46"), open.contains("5.8.18"), open.contains("5.9")),
            (Some(true), Some(false), Some(true))
        );
        let closed = Kernels::parse("4.6-6.14").expect("a range");
        assert_eq!((closed.contains("6.14.11"), closed.contains("6.15.0")), (Some(true), Some(false)));
        assert_eq!(open.contains("linux"), None, "unknown is neither");
        assert_eq!((Kernels::parse("5.9"), Kernels::parse("5.x-")), (None, None));
    }
}
