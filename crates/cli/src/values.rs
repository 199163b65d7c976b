//! Values on the command line: lists, and ranges with a step.

use kontig_error::{AskedWrongly, Error};
use kontig_results::Seeds;
use kontig_text::{UNITS, grouped, parse_size};

/// More values than anyone reads a table of.
const MOST_OF_A_RANGE: u64 = 100;

/// A setting or parameter with its values.
pub type Assigned = (String, Vec<String>);

/// The values of a range `0..100:20`, both ends included, or the one value.
///
/// # Errors
/// What is wrong with the range, and what to write instead.
fn spelled_out(value: &str) -> Result<Vec<String>, String> {
    let Some((from, rest)) = value.split_once("..") else { return Ok(vec![value.to_owned()]) };
    let (to, step) = rest
        .split_once(':')
        .ok_or_else(|| format!("the range {value} has no step: write {value}:STEP, as in 0..100:20"))?;
    let ends = [from, to, step].map(str::trim);
    let plain = ends.map(|text| text.parse::<u64>().ok());
    if let [Some(from), Some(to), Some(step)] = plain {
        let numbers = [from, to, step];
        return Ok(steps(value, ends, numbers)?.iter().map(u64::to_string).collect());
    }
    if let Some(text) = ends.iter().find(|text| text.parse::<f64>().is_ok_and(|number| number.fract() != 0.0)) {
        return Err(format!("{text} in {value} is no whole number: of those only lists are taken, as 0.5,1,1.5"));
    }
    let no_number = |text: &str| {
        format!("'{text}' in the range {value} is neither a whole number nor a size: write 0..100:20, 1GiB..4GiB:1GiB")
    };
    let size_of = |text: &str| parse_size(text).ok_or_else(|| no_number(text));
    let sizes = [size_of(ends[0])?, size_of(ends[1])?, size_of(ends[2])?];
    // In the unit of the step.
    let letter = step.trim_start_matches(|c: char| c.is_ascii_digit() || ". ".contains(c)).strip_suffix("iB");
    let unit = letter.and_then(|letter| Some((letter, UNITS.iter().find(|(name, _)| *name == letter)?.1)));
    let (letter, unit) = unit.ok_or_else(|| {
        format!("the step {step} of {value} has no unit, and its ends have one: give it one, as 1GiB..4GiB:512MiB")
    })?;
    let size = |bytes: &u64| format!("{}{letter}iB", *bytes as f64 / unit as f64);
    Ok(steps(value, ends, sizes)?.iter().map(size).collect())
}

/// The numbers of a range, given with its texts.
fn steps(range: &str, [from, to, step]: [&str; 3], [first, last, by]: [u64; 3]) -> Result<Vec<u64>, String> {
    if by == 0 {
        return Err(format!("the step of {range} is 0: a step is 1 or more"));
    }
    if first > last {
        return Err(format!("the range {range} goes down: write the lower end first, {to}..{from}:{step}"));
    }
    if !(last - first).is_multiple_of(by) {
        return Err(format!(
            "the steps of {range} do not come to {to}: choose an end that {from} plus steps of {step} reaches"
        ));
    }
    few((last - first) / by, "values").map_err(|many| format!("the range {range} has {many}: take a longer step"))?;
    Ok((0..=(last - first) / by).map(|i| first + i * by).collect())
}

/// Whether a range of this many steps has few enough values.
///
/// # Errors
/// How many values those are, if too many.
fn few(steps: u64, what: &str) -> Result<(), String> {
    match steps.checked_add(1) {
        Some(..=MOST_OF_A_RANGE) => Ok(()),
        Some(values) => Err(format!("{} {what}, and {MOST_OF_A_RANGE} are the most", grouped(values))),
        // Of all numbers of 64 bits.
        None => Err(format!("18,446,744,073,709,551,616 {what}, and {MOST_OF_A_RANGE} are the most")),
    }
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
pub fn setting(text: &str) -> Result<Assigned, Error> {
    let example = "SYSCTL=VALUE, such as vm.compaction_proactiveness=60; several as 0,60 or 0..100:20";
    match assigned("--set", text, example)?.as_slice() {
        [one] => Ok(one.clone()),
        _ => Err(wrongly("--set", text, "one sysctl an option: give --set once for each")),
    }
}

/// Parameters with their values, of `--with`.
///
/// # Errors
/// How they are written.
pub fn parameters(text: &str) -> Result<Vec<Assigned>, Error> {
    let example = "KEY=VALUE, such as jobs=8 or jobs=8,size=16GiB; several as 4,8 or 1GiB..4GiB:1GiB";
    assigned("--with", text, example)
}

fn wrongly(option: &str, text: &str, reason: &str) -> Error {
    AskedWrongly::Value(format!("{option} {text}: {reason}")).into()
}

/// Everything assigned, with all values: a part without `=` is another value of the one before.
fn assigned(option: &str, text: &str, example: &str) -> Result<Vec<Assigned>, Error> {
    let wrong = |reason: &str| wrongly(option, text, reason);
    let form = || wrong(&format!("write it as {example}"));
    let mut all: Vec<Assigned> = Vec::new();
    for part in parts(text) {
        let value = match part.split_once('=') {
            Some((name, value)) => {
                all.push((name.trim().to_owned(), Vec::new()));
                value
            }
            None => part,
        };
        let (_, values) = all.last_mut().ok_or_else(form)?;
        values.extend(spelled_out(value).map_err(|reason| wrong(&reason))?);
    }
    for (name, values) in &all {
        if name.is_empty() {
            return Err(form());
        }
        if values.iter().any(|value| value.trim().is_empty()) {
            let reason = match values.as_slice() {
                [_] => format!("{name} has no value: write it as {example}"),
                _ => format!("a value of {name} is empty: there is a comma too many"),
            };
            return Err(wrong(&reason));
        }
    }
    Ok(all)
}

/// Seeds: one, from which repetitions go on, or the list of all: `1,5,9`, `1..5`.
///
/// # Errors
/// How they are written.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    const FORM: &str = "expected a whole number from 0 to 18446744073709551615, or several as 1,5,9 or 1..5";
    if let Ok(first) = text.parse() {
        return Ok(Seeds::From(first));
    }
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| FORM.to_owned());
    let mut all: Vec<u64> = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((_, to)) if to.contains(':') => {
                return Err(format!("the range {part} has a step, and seeds have none: 1..5 are five of them"));
            }
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from > to {
                    return Err(format!("the range {part} goes down: write the lower end first, {to}..{from}"));
                }
                few(to - from, "seeds").map_err(|many| format!("the range {part} has {many}"))?;
                all.extend(from..=to);
            }
            None => all.push(number(part)?),
        }
    }
    if let Some((_, twice)) = all.iter().enumerate().find(|(i, seed)| all[..*i].contains(seed)) {
        return Err(format!("seed {twice} is given twice: name each once"));
    }
    Ok(Seeds::These(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_both_ends() {
        let of = |text| setting(text).map(|(_, values)| values.join(" ")).map_err(|e| e.to_string());
        assert_eq!(of("vm.x=0..100:20"), Ok("0 20 40 60 80 100".into()));
        assert_eq!(of("vm.x=5,10..24:7,50"), Ok("5 10 17 24 50".into()));
    }

    #[test]
    fn a_wrong_list_or_range_is_answered_with_the_right_form() {
        let said = |text: &str| {
            let said = setting(text).map_err(|e| e.to_string()).expect_err("refused");
            said.strip_prefix(&format!("--set {text}: ")).map(str::to_owned).expect("it names the option")
        };
        assert_eq!(said("vm.x=0..100"), "the range 0..100 has no step: write 0..100:STEP, as in 0..100:20");
        assert_eq!(said("vm.x=0..100:0"), "the step of 0..100:0 is 0: a step is 1 or more");
        assert_eq!(said("vm.x=9..1:2"), "the range 9..1:2 goes down: write the lower end first, 1..9:2");
        let beyond = "the steps of 0..100:30 do not come to 100: choose an end that 0 plus steps of 30 reaches";
        assert_eq!(said("vm.x=0..100:30"), beyond);
        let many = "the range 0..100000:1 has 100,001 values, and 100 are the most: take a longer step";
        assert_eq!(said("vm.x=0..100000:1"), many);
        assert!(
            said("vm.x=0..18446744073709551615:1")
                .contains(" has 18,446,744,073,709,551,616 values, and 100 are the most")
        );
        let fraction = "0.5 in 0..2:0.5 is no whole number: of those only lists are taken, as 0.5,1,1.5";
        assert_eq!(said("vm.x=0..2:0.5"), fraction);
        let unit = "the step 1 of 1GiB..2GiB:1 has no unit, and its ends have one: give it one, as 1GiB..4GiB:512MiB";
        assert_eq!(said("vm.x=1GiB..2GiB:1"), unit);
        assert!(said("vm.x=a..b:1").starts_with("'a' in the range a..b:1 is neither a whole number nor a size"));
        assert!(said("vm.x=").starts_with("vm.x has no value: write it as SYSCTL=VALUE, such as"));
        assert_eq!(said("vm.x=1,"), "a value of vm.x is empty: there is a comma too many");
        assert!(said("60").starts_with("write it as SYSCTL=VALUE"));
        assert_eq!(said("vm.x=1,vm.y=2"), "one sysctl an option: give --set once for each");
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
        let said = |text| seeds(text).expect_err("refused");
        assert_eq!(said("1..101"), "the range 1..101 has 101 seeds, and 100 are the most");
        assert_eq!(said("3..1"), "the range 3..1 goes down: write the lower end first, 1..3");
        assert_eq!(said("1..3,2"), "seed 2 is given twice: name each once");
        assert_eq!(said("1..9:2"), "the range 1..9:2 has a step, and seeds have none: 1..5 are five of them");
        for wrong in ["", "1,", "..", "-1", "x", "1.5"] {
            assert!(said(wrong).starts_with("expected a whole number from 0 to"), "{wrong}");
        }
        assert!(
            said("0..18446744073709551615").contains(" has 18,446,744,073,709,551,616 seeds, and 100 are the most")
        );
    }
}
