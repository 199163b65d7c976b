//! Sizes as a workload's parameters say them, and whether a machine has room for them.

use kontig_text::parse_size;

pub(crate) use kontig_program::HPAGE_PMD_NR;

/// The pages of a mapping of this size.
pub(crate) fn pages(name: &str, size: &str) -> Result<u32, String> {
    let bytes = parse_size(size).ok_or_else(|| format!("{name} = \"{size}\" is not a size such as \"4 GiB\""))?;
    match u32::try_from(bytes / 4096) {
        Ok(0) => Err(format!("{name} = \"{size}\" is less than a page, which is 4 KiB")),
        Ok(pages) => Ok(pages),
        Err(_) => Err(format!("{name} = \"{size}\" is beyond 16 TiB")),
    }
}

/// Checks that `copies` fully touched mappings of this size fit on a machine with `pages` of
/// memory.
pub(crate) fn all_fit(name: &str, size: &str, machine: u64, copies: u64) -> Result<(), String> {
    if u64::from(pages(name, size)?) * copies <= machine {
        return Ok(());
    }
    let copies = if copies == 1 { String::new() } else { format!(" in {copies} copies") };
    let mib = machine / 256;
    Err(format!("{name} = \"{size}\"{copies}: the machine has {mib} MiB: choose less, or another machine"))
}
