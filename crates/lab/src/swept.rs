//! Sweeps: variants that differ in one number alone, a sysctl's or a parameter's of the workload.

use crate::experiment::Variant;
use crate::sysctls;
use kontig_results::Sweep;
use kontig_text::UNITS;
use kontig_workload::{bytes, unit};
use std::collections::BTreeMap;

/// A sweep has as many variants at least; of several kernels or machines two each, since a value
/// says nothing against another kernel's baseline.
const LEAST: usize = 3;
const LEAST_OF_EACH: usize = 2;

/// The sweeps among these variants: of each kernel and machine, those that differ in one number.
pub(crate) fn sweeps(variants: &[Variant]) -> Vec<Sweep> {
    let mut alike: Vec<Vec<usize>> = Vec::new();
    for (i, v) in variants.iter().enumerate() {
        let apart = |v: &Variant| (v.profile.clone(), v.switches.clone(), v.machine.clone());
        match alike.iter_mut().find(|group| apart(&variants[group[0]]) == apart(v)) {
            Some(group) => group.push(i),
            None => alike.push(vec![i]),
        }
    }
    let single = alike.len() == 1;
    let is_grid = !single && alike.iter().all(|group| group.len() >= LEAST_OF_EACH);
    let sweep = |group: Vec<usize>| {
        let members: Vec<&Variant> = group.iter().map(|i| &variants[*i]).collect();
        let least = if is_grid { LEAST_OF_EACH } else { LEAST };
        let Numbers { setting, unit, values } = numbers(&members).filter(|numbers| numbers.values.len() >= least)?;
        let of = if single { String::new() } else { shared(&members) };
        Some(Sweep { of, setting, unit, variants: group, values, pairs: Vec::new() })
    };
    alike.into_iter().filter_map(sweep).collect()
}

/// The only setting in which variants differ, and its value in each.
struct Numbers {
    setting: String,
    unit: String,
    values: Vec<f64>,
}

fn numbers(variants: &[&Variant]) -> Option<Numbers> {
    let settings: Vec<BTreeMap<String, toml::Value>> = variants.iter().map(|v| settings(v)).collect::<Option<_>>()?;
    let mut names: Vec<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| settings.iter().any(|own| own.get(*name) != settings[0].get(*name)));
    let [name] = names[..] else { return None };
    let each = settings.iter().map(|own| own.get(name)).collect::<Option<Vec<&toml::Value>>>()?;
    let (values, unit) = match each.iter().map(|value| bytes(value)).collect::<Option<Vec<u64>>>() {
        Some(sizes) => in_one_unit(&sizes),
        None => (each.into_iter().map(number).collect::<Option<_>>()?, unit(name).into()),
    };
    let all_differ = values.iter().enumerate().all(|(i, value)| !values[..i].contains(value));
    all_differ.then(|| Numbers { setting: name.clone(), unit, values })
}

fn number(value: &toml::Value) -> Option<f64> {
    match value {
        toml::Value::Integer(number) => Some(*number as f64),
        toml::Value::Float(number) => Some(*number),
        toml::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Sizes in the largest unit that divides them all.
fn in_one_unit(sizes: &[u64]) -> (Vec<f64>, String) {
    let divides = |(_, unit): &&(&str, u64)| sizes.iter().all(|bytes| bytes.is_multiple_of(*unit));
    let (name, unit) = UNITS
        .iter()
        .rev()
        .find(divides)
        .map_or((String::from("B"), 1), |(letter, bytes)| (format!("{letter}iB"), *bytes));
    (sizes.iter().map(|bytes| (bytes / unit) as f64).collect(), name)
}

/// A variant's settings by the sysctls' full names, and its parameters.
fn settings(v: &Variant) -> Option<BTreeMap<String, toml::Value>> {
    let sysctls = v.sysctl_texts().into_iter().map(|(name, value)| {
        let name = sysctls::setting(&name).ok()?.name.to_owned();
        Some((name, toml::Value::String(value)))
    });
    let own = v.with.iter().map(|(name, value)| Some((name.clone(), value.clone())));
    sysctls.chain(own).collect()
}

/// The parts that the names of variants have in common: `7.2` of `7.2+swappiness=0` and
/// `7.2+swappiness=60`.
fn shared(variants: &[&Variant]) -> String {
    let Some((first, rest)) = variants.split_first() else { return String::new() };
    let parts = |v: &Variant| -> (Vec<String>, String) {
        let (settings, machine) = v.name.split_once(" on ").unwrap_or((&v.name, ""));
        (settings.split('+').map(String::from).collect(), machine.to_owned())
    };
    let (names, machine) = parts(first);
    let in_all = |part: &&String| rest.iter().all(|v| parts(v).0.contains(part));
    let names: Vec<&str> = names.iter().filter(in_all).map(String::as_str).collect();
    let on = if machine.is_empty() { String::new() } else { format!(" on {machine}") };
    format!("{}{on}", names.join("+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(name: &str, sysctls: &[(&str, &str)]) -> Variant {
        let value = |value: &str| toml::Value::String(value.into());
        Variant {
            name: name.into(),
            profile: "6.1".into(),
            sysctls: sysctls.iter().map(|(name, of)| ((*name).into(), value(of))).collect(),
            ..Variant::default()
        }
    }

    fn of_proactiveness(values: &[&str]) -> Vec<Variant> {
        let of = |value: &&str| variant(value, &[("compaction_proactiveness", value), ("vm.swappiness", "60")]);
        values.iter().map(of).collect()
    }

    #[test]
    fn variants_that_differ_in_one_number_are_a_sweep() {
        let found = sweeps(&of_proactiveness(&["0", "40", "20"]));
        let [sweep] = found.as_slice() else { panic!("one: {found:?}") };
        assert_eq!((sweep.setting.as_str(), sweep.of.as_str()), ("vm.compaction_proactiveness", ""));
        assert_eq!((&sweep.values, &sweep.variants), (&vec![0.0, 40.0, 20.0], &vec![0, 1, 2]));
        assert!(sweeps(&of_proactiveness(&["0", "20"])).is_empty(), "two are a comparison");
        assert!(sweeps(&of_proactiveness(&["0", "20", "0"])).is_empty(), "two results of one value");
        let with = |change: fn(&mut Variant)| {
            let mut variants = of_proactiveness(&["0", "40", "20"]);
            change(&mut variants[1]);
            sweeps(&variants)
        };
        assert!(with(|v| v.profile = "7.2".into()).is_empty());
        assert!(with(|v| v.sysctls.clear()).is_empty(), "a variant has another kernel's default");
        assert!(with(|v| drop(v.sysctls.insert("vm.swappiness".into(), toml::Value::String("1".into())))).is_empty());
        assert!(sweeps(&["always", "defer", "never"].map(|value| variant("v", &[("thp.defrag", value)]))).is_empty());
    }

    #[test]
    fn each_kernel_and_machine_has_a_sweep_of_its_own() {
        let mut variants = Vec::new();
        for (profile, machine) in [("6.1", "box-2g"), ("7.2", "box-2g")] {
            for mut v in of_proactiveness(&["0", "20", "60"]) {
                v.name = format!("{profile}+proactiveness={} on {machine}", v.name);
                (v.profile, v.machine) = (profile.into(), Some(machine.into()));
                variants.push(v);
            }
        }
        let of: Vec<(String, Vec<usize>)> = sweeps(&variants).into_iter().map(|s| (s.of, s.variants)).collect();
        assert_eq!(of, [("6.1 on box-2g".into(), vec![0, 1, 2]), ("7.2 on box-2g".into(), vec![3, 4, 5])]);
    }

    #[test]
    fn sizes_are_swept_in_a_unit_and_parameters_in_that_of_their_name() {
        let with = |name: &str, values: [&str; 3]| {
            let value =
                |text: &str| text.parse().map_or_else(|_| toml::Value::String(text.into()), toml::Value::Integer);
            let of = |text: &str| Variant { with: [(name.into(), value(text))].into(), ..variant(text, &[]) };
            let found = sweeps(&values.map(of));
            found.into_iter().map(|s| (s.unit, s.values)).next()
        };
        assert_eq!(
            with("measure.size", ["512MiB", "1GiB", "2 GiB"]),
            Some(("MiB".into(), vec![512.0, 1024.0, 2048.0]))
        );
        assert_eq!(with("measure.every_ms", ["10", "20", "40"]), Some(("ms".into(), vec![10.0, 20.0, 40.0])));
        assert_eq!(with("jobs", ["1", "2", "4"]), Some((String::new(), vec![1.0, 2.0, 4.0])));
        assert_eq!(with("holes", ["first", "last", "spread"]), None);
    }
}
