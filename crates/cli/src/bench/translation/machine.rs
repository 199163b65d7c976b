//! A machine file with what was measured.

use kontig_bench::translation::measured::{FirstTouch, Measured};
use kontig_error::{Error, Failed};
use kontig_sim::MachineFile;
use kontig_translation::Processor;
use std::path::Path;

/// A machine file like `base`, with what was measured.
pub(super) fn machine(name: &str, base: &MachineFile, out: &Path, m: &Measured) -> Result<String, Error> {
    let failed = |e: toml::ser::Error| Failed::Write { path: out.display().to_string(), reason: e.to_string() };
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    // A file is named by its path, from where this one lies.
    let name = if kontig_profiles::is_path(name) {
        std::path::absolute(name).map_or(name.into(), |path| path.display().to_string())
    } else {
        name.to_string()
    };
    let Processor { processor, source, .. } = &m.processor;
    let head = toml::toml! {
        name = (stem.as_ref())
        summary = (format!("{} with the address translation and the first touch of {processor}", base.name))
        base = (name)
        notes = (format!("{} with what 'kontig bench translation' measured.", base.name))
    };
    let translation = toml::Table::try_from(&m.processor).map_err(failed)?;
    let mut all = toml::Table::new();
    if let Some(costs) = costs(base, m.first_touch, source) {
        all.insert("costs".into(), costs.into());
    }
    all.insert("translation".into(), translation.into());
    let text = |table: &toml::Table| toml::to_string(table).map_err(failed);
    Ok(format!("{}\n{}", text(&head)?, text(&all)?))
}

/// Costs that follow from the first touch: a huge page is clearing 2 MiB, a small page's fault is
/// what is left beside clearing it. None where the measurement does not fit the base's other costs.
fn costs(
    base: &MachineFile,
    FirstTouch { again_ns: [small, huge], .. }: FirstTouch,
    source: &str,
) -> Option<toml::Table> {
    let gb_s = f64::from(2 << 20) / huge;
    let fault = (small - huge) / 512.0;
    if fault <= 0.0 || gb_s > base.costs.write_all.gb_s {
        return None;
    }
    let hundredths = |value: f64| (value * 100.0).round() / 100.0;
    let source = |what: &str| format!("{what}; {source}");
    let (of_write, of_fault) = (source("a huge page touched again"), source("a small page touched again, not cleared"));
    let (gb_s, fault) = (hundredths(gb_s), hundredths(fault));
    Some(toml::toml! {
        fault = { ns = fault, source = of_fault }
        write_one = { gb_s = gb_s, source = of_write }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;
    use kontig_lab::catalog;

    #[test]
    fn the_machine_file_can_be_read_and_has_what_was_measured() {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("mine.toml");
        let (base, _) = catalog::machine("server-64g").expect("built in");
        let m = measured();
        let text = machine("server-64g", &base, &out, &m).expect("a file");
        std::fs::write(&out, text).expect("written");
        let (mine, _) = catalog::machine(&out.display().to_string()).expect("it can be read");
        assert_eq!((mine.name.as_str(), mine.cpus), ("mine", base.cpus));
        assert_eq!(mine.translation.as_ref(), Some(&m.processor));
        assert_eq!((mine.costs.write_one.gb_s, mine.costs.fault.ns), (5.24, 1171.88));
    }

    #[test]
    fn costs_that_do_not_fit_are_left_to_the_base() {
        let (base, _) = catalog::machine("server-64g").expect("built in");
        let of = |again_ns| costs(&base, FirstTouch { ns: [1e6; 2], again_ns }, "a test");
        assert!(of([1e6, 2e6]).is_none() && of([1e6, 1.0]).is_none());
    }
}
