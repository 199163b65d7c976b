//! A workload's parameters by name: what there is to change, and a workload with one changed.
//!
//! A parameter is called by the way to it in the file, joined by points: `measure.kbuild.jobs` is
//! `jobs` of the task `kbuild` in the phase `measure`. Its last parts are enough where no other
//! parameter has them. Tasks that differ only in their number (`writer 1`, `writer 2`) share a name
//! without it. Which keys there are, and what each takes, is known by the structs that read files
//! ([`crate::shape`]); whether a value is right, by the checks of the whole workload.

mod found;
mod range;

use super::Workload;
use crate::shape::Shape;
use kontig_text::parse_size;

/// A part of a parameter's name.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Name {
    full: String,
    /// Without the number of one of several alike.
    shared: String,
}

impl Name {
    fn of(text: &str) -> Name {
        let full: String = text.chars().map(|c| if " .,=".contains(c) { '-' } else { c }).collect();
        let shared = full.rsplit_once('-').filter(|(_, n)| n.bytes().all(|c| c.is_ascii_digit()));
        let shared = shared.map_or(full.as_str(), |(name, _)| name).to_owned();
        Name { full, shared }
    }
}

/// A value in a workload's file, with the way to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    names: Vec<Name>,
    /// Keys and numbers, from the outermost.
    way: Vec<String>,
    pub shape: Shape,
    /// `None` if the file leaves it out.
    pub value: Option<toml::Value>,
}

impl Parameter {
    /// Its whole name, without the numbers of tasks alike.
    pub fn path(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(|name| name.shared.as_str()).collect();
        names.join(".")
    }

    /// The key in the file.
    pub fn key(&self) -> &str {
        self.way.last().map_or("", String::as_str)
    }

    /// Whether this is its name, or the last parts of it.
    pub fn is_called(&self, name: &str) -> bool {
        let asked: Vec<&str> = name.split('.').collect();
        let Some(first) = self.names.len().checked_sub(asked.len()) else { return false };
        self.names[first..].iter().zip(asked).all(|(name, asked)| name.full == asked || name.shared == asked)
    }

    /// Whether it is of one step in a list of them.
    pub fn is_of_a_step(&self) -> bool {
        let above = self.way.split_last().map_or(&[][..], |(_, above)| above);
        above.iter().any(|step| step == "steps" || step == "files")
    }

    /// Whether these keys and numbers lead to it.
    pub fn is_at(&self, way: &[String]) -> bool {
        self.way == way
    }

    /// The unit of its values; empty if they have none.
    pub fn unit(&self) -> &'static str {
        unit(self.key())
    }

    /// Reads a value as it is written on a command line.
    ///
    /// # Errors
    /// What it takes instead.
    pub fn read(&self, text: &str) -> Result<toml::Value, String> {
        let text = text.trim();
        let takes = |what: &str| format!("'{text}' is not {what}");
        match self.shape {
            Shape::YesNo => text.parse().map(toml::Value::Boolean).map_err(|_| takes("a value of it")),
            Shape::Whole { most } => {
                let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
                    return Err(takes("a whole number"));
                }
                let held = text.parse::<i64>().ok().filter(|n| u64::try_from(*n).is_ok_and(|n| n <= most));
                held.map(toml::Value::Integer).ok_or_else(|| match text.starts_with('-') {
                    true => format!("{} = {text} is negative", self.key()),
                    false => format!("{} = {text} is more than {}", self.key(), most.min(i64::MAX as u64)),
                })
            }
            Shape::Number => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                number.map(toml::Value::Float).ok_or_else(|| takes("a number"))
            }
            Shape::OneOf(words) if !words.contains(&text) => Err(takes("a value of it")),
            Shape::OneOf(_) => Ok(toml::Value::String(text.into())),
            Shape::Text if self.is_size() && parse_size(text).is_none() && !self.may_be_none(text) => {
                Err(takes("a size such as 4GiB"))
            }
            Shape::Text => Ok(toml::Value::String(text.into())),
            Shape::List => {
                let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                let inner = inner.ok_or_else(|| takes("a list such as [1,4]"))?;
                let entries = inner.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                let entry = |text: &str| match text.parse() {
                    Ok(number) => toml::Value::Integer(number),
                    Err(_) => toml::Value::String(text.into()),
                };
                Ok(toml::Value::Array(entries.map(entry).collect()))
            }
            Shape::Table => Err(format!("{} is a table: change it in a file", self.path())),
        }
    }

    /// Whether its value is a size, such as `4 GiB`.
    fn is_size(&self) -> bool {
        self.shape == Shape::Text && self.value.as_ref().and_then(bytes).is_some()
    }

    /// Whether this is a group's limit, and the word for none.
    fn may_be_none(&self, text: &str) -> bool {
        self.way.first().is_some_and(|step| step == "group") && text == "max"
    }

    /// Its value as text; a dash if the file leaves it out.
    pub fn text(&self) -> String {
        self.value.as_ref().map_or_else(|| "–".into(), shown)
    }
}

/// The unit that the name of a parameter ends in; empty if it has none.
pub fn unit(name: &str) -> &'static str {
    const UNITS: [(&str, &str); 7] =
        [("_ns", "ns"), ("_us", "us"), ("_ms", "ms"), ("mib_s", "MiB/s"), ("_s", "s"), ("seconds", "s"), ("ms", "ms")];
    UNITS.iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit)
}

/// A value as a command line has it.
pub fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        // 30, not 30.0.
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Array(entries) => {
            let entries: Vec<String> = entries.iter().map(shown).collect();
            format!("[{}]", entries.join(","))
        }
        other => other.to_string(),
    }
}

/// The bytes of a size.
pub fn bytes(value: &toml::Value) -> Option<u64> {
    let text = value.as_str()?;
    parse_size(text).filter(|_| text.ends_with('B'))
}

impl Workload {
    /// The workload with these parameters set, each to its value, all at once: one may take its
    /// value only if another has its own.
    ///
    /// # Errors
    /// Why it cannot be read or contradicts itself then.
    pub fn set(&self, values: &[(&Parameter, &toml::Value)]) -> Result<Workload, String> {
        let mut written = toml::Value::try_from(self).map_err(|e| e.to_string())?;
        for (parameter, value) in values {
            put(&mut written, &parameter.way, value);
        }
        let changed: Workload = written.try_into().map_err(|e: toml::de::Error| e.message().to_owned())?;
        changed.validate().map_err(|wrong| wrong.reason)?;
        Ok(changed)
    }
}

/// Puts a value in a place, whose table is there.
fn put(written: &mut toml::Value, way: &[String], value: &toml::Value) {
    let Some((key, before)) = way.split_last() else { return };
    let table = before.iter().try_fold(written, |value, step| match value {
        toml::Value::Table(table) => table.get_mut(step),
        toml::Value::Array(entries) => entries.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    });
    if let Some(toml::Value::Table(table)) = table {
        table.insert(key.clone(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Room;

    fn workload(text: &str) -> Workload {
        toml::from_str(text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn short() -> Workload {
        workload(
            "prepare = { kind = 'fragment', holes = 'random' }\nsettle_s = 30\n\
             measure = { kind = 'heap', size = '1 GiB' }",
        )
    }

    fn long() -> Workload {
        workload(
            "[[phase]]\nname = 'warm up'\nseconds = 3\n[[phase]]\nname = 'measure'\nmeasured = true\n\
             [[phase.task]]\nname = 'writer 1'\nrun = { kind = 'churn', size = '1 MiB' }\nbackground = true\n\
             [[phase.task]]\nname = 'writer 2'\nrun = { kind = 'churn', size = '2 MiB' }\nbackground = true\n\
             [[phase.task]]\nname = 'log'\ncopies = 2\n\
             run = { kind = 'steps', steps = [{ do = 'fill', size = '1 MiB' }, { do = 'sleep', ms = 5 }] }",
        )
    }

    fn paths(workload: &Workload) -> Vec<String> {
        workload.parameters().iter().map(|parameter| format!("{}={}", parameter.path(), parameter.text())).collect()
    }

    fn called<'a>(all: &'a [Parameter], name: &str) -> Vec<&'a Parameter> {
        all.iter().filter(|parameter| parameter.is_called(name)).collect()
    }

    #[test]
    fn both_forms_list_every_key_by_its_way_and_value() {
        let expected = [
            "prepare.holes=random",
            "prepare.freed_per_section=384",
            "prepare.leave=–",
            "settle_s=30",
            "measure.size=1 GiB",
        ];
        assert_eq!(paths(&short()), expected);
        let expected = [
            "warm-up.seconds=3",
            "measure.writer.size=1 MiB",
            "measure.writer.stretch=64",
            "measure.writer.pause_us=100",
            "measure.writer.size=2 MiB",
            "measure.writer.stretch=64",
            "measure.writer.pause_us=100",
            "measure.log.copies=2",
            "measure.log.repeat=1",
            "measure.log.steps.1.size=1 MiB",
            "measure.log.steps.1.disk=0",
            "measure.log.steps.1.random=false",
            "measure.log.steps.2.disk=0",
            "measure.log.steps.2.random=false",
            "measure.log.steps.2.ms=5",
        ];
        let mut found = paths(&long());
        let mut expected: Vec<String> = expected.map(String::from).to_vec();
        // Within a table the order is that of the struct.
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn last_parts_are_enough_and_tasks_alike_are_called_with_or_without_their_number() {
        let all = long().parameters();
        let count = |name: &str| called(&all, name).len();
        assert_eq!((count("writer.size"), count("writer-2.size"), count("measure.writer-1.size")), (2, 1, 1));
        assert_eq!(
            (count("size"), count("seconds"), count("write.size"), count("x.measure.writer.size")),
            (3, 1, 0, 0)
        );
    }

    #[test]
    fn a_value_is_read_as_its_key_takes_it_and_checked_with_the_whole() {
        let (short, long) = (short(), long());
        let set = |workload: &Workload, name: &str, text: &str| {
            let all = workload.parameters();
            let parameters = called(&all, name);
            let value = parameters[0].read(text)?;
            workload.set(&parameters.iter().map(|parameter| (*parameter, &value)).collect::<Vec<_>>())
        };
        let changed = set(&short, "size", "16GiB").expect("it fits");
        assert_eq!(changed.parameters().last().expect("a size").text(), "16GiB");
        let both = set(&long, "writer.size", "4 MiB").expect("they fit");
        assert_eq!(called(&both.parameters(), "writer.size").iter().filter(|p| p.text() == "4 MiB").count(), 2);
        let said = |workload, name, text| set(workload, name, text).expect_err("refused");
        assert_eq!(said(&short, "size", "lots"), "'lots' is not a size such as 4GiB");
        assert_eq!(said(&short, "holes", "round"), "'round' is not a value of it");
        assert_eq!(said(&short, "freed_per_section", "half"), "'half' is not a whole number");
        assert_eq!(said(&short, "freed_per_section", "-1"), "freed_per_section = -1 is negative");
        for number in ["4294967296", "99999999999999999999999"] {
            let more = format!("freed_per_section = {number} is more than 4294967295");
            assert_eq!(said(&short, "freed_per_section", number), more);
        }
        assert_eq!(said(&short, "freed_per_section", "513"), "freed_per_section = 513: a section has 512 pages");
        assert!(said(&short, "settle_s", "-1").contains("settle_s = -1"));
        assert_eq!(said(&long, "steps.1.random", "yes"), "'yes' is not a value of it");
    }

    #[test]
    fn a_range_is_what_the_checks_let_pass_on_a_machine() {
        let (short, long) = (short(), long());
        let room = Room { nodes: vec![2 << 18], cpus: 4, ..Room::default() };
        let takes = |workload: &Workload, name: &str| {
            let all = workload.parameters();
            workload.takes(&called(&all, name), Some(&room))
        };
        assert_eq!(takes(&short, "freed_per_section").as_deref(), Some("0 to 512"));
        assert_eq!(takes(&short, "measure.size").as_deref(), Some("2 MiB to 2 GiB"));
        assert_eq!(takes(&short, "settle_s").as_deref(), Some("0 to 1,000,000,000"));
        assert_eq!(takes(&short, "holes").as_deref(), Some("first, last, random, spread"));
        assert_eq!(takes(&long, "copies").as_deref(), Some("1 to 2,048"));
        assert_eq!(takes(&long, "writer-1.stretch").as_deref(), Some("1 to 256"));
    }

    #[test]
    fn units_are_those_that_keys_end_in() {
        let all = long().parameters();
        let unit = |name: &str| called(&all, name)[0].unit();
        assert_eq!((unit("writer-1.pause_us"), unit("seconds"), unit("ms"), unit("repeat")), ("us", "s", "ms", ""));
    }
}
