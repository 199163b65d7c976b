//! Values on the command line: lists, and ranges with a step.

use kontig_lab::{AskedWrongly, LabError};
use kontig_results::Seeds;
use kontig_text::{UNITS, parse_size};

/// More values than anyone reads a table of.
const MOST_OF_A_RANGE: u64 = 100;

/// A setting or parameter with its values.
pub type Assigned = (String, Vec<String>);

/// The values of a range `0..100:20`, both ends included, or the one value; none for a wrong range.
fn spelled_out(value: &str) -> Option<Vec<String>> {
    let Some((from, rest)) = value.split_once("..") else { return Some(vec![value.to_owned()]) };
    let (to, step) = rest.split_once(':')?;
    let ends = [from, to, step];
    let plain: Option<Vec<u64>> = ends.iter().map(|text| text.parse().ok()).collect();
    if let Some(numbers) = plain {
        return Some(steps(&numbers)?.iter().map(u64::to_string).collect());
    }
    let sizes: Vec<u64> = ends.iter().map(|text| parse_size(text)).collect::<Option<_>>()?;
    // In the unit of the step.
    let letter = step.trim_start_matches(|c: char| c.is_ascii_digit() || ". ".contains(c)).strip_suffix("iB")?;
    let unit = UNITS.iter().find(|(name, _)| *name == letter)?.1;
    let size = |bytes: &u64| format!("{}{letter}iB", *bytes as f64 / unit as f64);
    Some(steps(&sizes)?.iter().map(size).collect())
}

fn steps(ends: &[u64]) -> Option<Vec<u64>> {
    let [from, to, step] = *ends else { return None };
    let reaches_its_end = step > 0 && from <= to && (to - from).is_multiple_of(step);
    let is_range = reaches_its_end && (to - from) / step < MOST_OF_A_RANGE;
    is_range.then(|| (0..=(to - from) / step).map(|i| from + i * step).collect())
}

/// The parts between commas that stand in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let outside = |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    };
    text.split(outside).collect()
}

/// A sysctl with its values, of `--set`.
///
/// # Errors
/// How it is written.
pub fn setting(text: &str) -> Result<Assigned, LabError> {
    let example = "SYSCTL=VALUE, such as vm.compaction_proactiveness=60; several as 0,60";
    match assigned(text).as_deref() {
        Some([one]) => Ok(one.clone()),
        _ => Err(wrongly("--set", text, example)),
    }
}

/// Parameters with their values, of `--with`.
///
/// # Errors
/// How they are written.
pub fn parameters(text: &str) -> Result<Vec<Assigned>, LabError> {
    assigned(text)
        .ok_or_else(|| wrongly("--with", text, "KEY=VALUE, such as jobs=8 or jobs=8,size=16GiB; several as 4,8"))
}

fn wrongly(option: &str, text: &str, example: &str) -> LabError {
    AskedWrongly::Value(format!(
        "{option} {text}: write it as {example}, a range of at most {MOST_OF_A_RANGE}, whose last step comes to its \
         end, as 0..100:20"
    ))
    .into()
}

/// Everything assigned, with all values: a part without `=` is another value of the one before.
fn assigned(text: &str) -> Option<Vec<Assigned>> {
    let mut all: Vec<Assigned> = Vec::new();
    for part in parts(text) {
        let value = match part.split_once('=') {
            Some((name, value)) => {
                all.push((name.trim().to_owned(), Vec::new()));
                value
            }
            None => part,
        };
        let (_, values) = all.last_mut()?;
        values.extend(spelled_out(value)?);
    }
    let is_whole = |(name, values): &Assigned| !name.is_empty() && values.iter().all(|value| !value.trim().is_empty());
    all.iter().all(is_whole).then_some(all)
}

/// Seeds: one, from which repetitions go on, or the list of all: `1,5,9`, `1..5`.
///
/// # Errors
/// How they are written.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    const FORM: &str = "expected a whole number from 0 to 18446744073709551615, or several as 1,5,9 or 1..5, each once";
    if let Ok(first) = text.parse() {
        return Ok(Seeds::From(first));
    }
    let mut all: Vec<u64> = Vec::new();
    for part in text.split(',') {
        let of = match part.split_once("..") {
            Some((from, to)) => {
                let ends = from.parse().ok().zip(to.parse::<u64>().ok());
                let few = ends.filter(|(from, to)| from <= to && to - from < MOST_OF_A_RANGE);
                few.map(|(from, to)| (from..=to).collect::<Vec<u64>>())
            }
            None => part.parse().ok().map(|seed| vec![seed]),
        };
        all.extend(of.ok_or(FORM)?);
    }
    let twice = all.iter().enumerate().any(|(i, seed)| all[..i].contains(seed));
    if twice { Err(FORM.into()) } else { Ok(Seeds::These(all)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_both_ends() {
        let of = |text| setting(text).map(|(_, values)| values.join(" ")).map_err(|e| e.to_string());
        assert_eq!(of("vm.x=0..100:20"), Ok("0 20 40 60 80 100".into()));
        assert_eq!(of("vm.x=5,10..24:7,50"), Ok("5 10 17 24 50".into()));
        let missed = "vm.x=0..100:30";
        for wrong in ["vm.x=0..100", missed, "vm.x=0..100:0", "vm.x=9..1:1", "vm.x=0..100000:1", "vm.x=a..b:1", "vm.x="]
        {
            assert!(of(wrong).expect_err("refused").starts_with(&format!("--set {wrong}: write it as")), "{wrong}");
        }
        assert!(of("vm.x=1,vm.y=2").is_err(), "one sysctl an option");
    }

    #[test]
    fn parameters_are_several_each_with_its_values() {
        let of = |text: &str| {
            let each = parameters(text).expect("it can be read").into_iter();
            each.map(|(name, values)| format!("{name}={}", values.join(" "))).collect::<Vec<_>>()
        };
        assert_eq!(of("jobs=8"), ["jobs=8"]);
        assert_eq!(of("jobs=4,8,a.size=1GiB"), ["jobs=4 8", "a.size=1GiB"]);
        assert_eq!(of("threads=[1,4],[2],jobs=1"), ["threads=[1,4] [2]", "jobs=1"]);
        assert_eq!(of("size=1GiB..2GiB:512MiB"), ["size=1024MiB 1536MiB 2048MiB"]);
        assert_eq!(of("gfp=GFP_KERNEL|__GFP_COMP"), ["gfp=GFP_KERNEL|__GFP_COMP"]);
        for wrong in ["jobs", "=8", "8,jobs=1", "jobs=,", "size=1GiB..2GiB", "size=1GiB..2GiB:3GiB"] {
            assert!(parameters(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_are_the_first_or_exactly_those_that_are_given() {
        assert_eq!(seeds("7"), Ok(Seeds::From(7)));
        assert_eq!(seeds("1,5,9"), Ok(Seeds::These(vec![1, 5, 9])));
        assert_eq!(seeds("1..3,8"), Ok(Seeds::These(vec![1, 2, 3, 8])));
        for wrong in ["", "-1", "1,1", "3..1", "1..3,2", "x", "1.5", "0..1000000"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
