//! The parameters that a workload's file has, with the way to each.

use super::{Name, Parameter};
use crate::group::LIMITS;
use crate::kind::Kind;
use crate::shape::{Key, Shape, keys};
use crate::steps::{LaidOut, Step};
use crate::workload::Workload;

impl Workload {
    /// Everything in it that can be changed, in the file's order.
    pub fn parameters(&self) -> Vec<Parameter> {
        // What was read can be written.
        let Ok(written) = toml::Value::try_from(self) else { return Vec::new() };
        let mut found = Found { written, all: Vec::new() };
        if let Some((prepare, _, measure)) = self.short() {
            found.run(&Place::default().key("prepare"), prepare);
            found.add(&Place::default(), Key { name: "settle_s", shape: Shape::Number });
            found.run(&Place::default().key("measure"), measure);
            return found.all;
        }
        for (g, group) in self.groups.iter().enumerate() {
            let of_group = Place::default().key("group");
            let of_group = Place { way: Vec::new(), ..of_group }.entry("group", g, Some(&group.name));
            LIMITS.into_iter().for_each(|name| found.add(&of_group, Key { name, shape: Shape::Text }));
        }
        for (p, phase) in self.phases.iter().enumerate() {
            let of_phase = Place::default().entry("phase", p, Some(&phase.name));
            found.add_if_said(&of_phase, Key { name: "seconds", shape: Shape::Number });
            for (t, task) in phase.task.iter().enumerate() {
                let of_task = of_phase.entry("task", t, task.name.as_deref());
                found.add_if_said(&of_task, Key { name: "copies", shape: Shape::Whole { most: u64::MAX } });
                found.add_if_said(&of_task, Key { name: "cpus", shape: Shape::List });
                found.run(&Place { way: [of_task.way, vec!["run".into()]].concat(), ..of_task }, &task.run);
            }
        }
        found.all
    }
}

/// A place in the file, and what it is called.
#[derive(Clone, Default)]
struct Place {
    names: Vec<Name>,
    way: Vec<String>,
}

impl Place {
    fn key(&self, key: &str) -> Place {
        let names = self.names.iter().cloned().chain([Name::of(key)]).collect();
        Place { names, way: self.way.iter().cloned().chain([key.into()]).collect() }
    }

    /// The `i`th entry of a list, by its name if it has one.
    fn entry(&self, list: &str, i: usize, name: Option<&str>) -> Place {
        let names = self.names.iter().cloned().chain(name.map(Name::of)).collect();
        Place { names, way: self.way.iter().cloned().chain([list.into(), i.to_string()]).collect() }
    }

    /// The `i`th entry of a list whose entries are called by their numbers, from 1.
    fn numbered(&self, list: &str, i: usize) -> Place {
        let number = Name { full: (i + 1).to_string(), shared: (i + 1).to_string() };
        let names = self.names.iter().cloned().chain([Name::of(list), number]).collect();
        Place { names, ..self.entry(list, i, None) }
    }
}

struct Found {
    written: toml::Value,
    all: Vec<Parameter>,
}

impl Found {
    fn add(&mut self, of: &Place, key: Key) {
        let Place { names, way } = of.key(key.name);
        let value = at(&self.written, &way).cloned();
        self.all.push(Parameter { names, way, shape: key.shape, value });
    }

    fn add_if_said(&mut self, of: &Place, key: Key) {
        if at(&self.written, &of.key(key.name).way).is_some() {
            self.add(of, key);
        }
    }

    /// The parameters of a program, and of each of its steps those that it states.
    fn run(&mut self, of: &Place, kind: &Kind) {
        let steps = match kind {
            Kind::Steps(steps) => Some(steps),
            _ => None,
        };
        for key in kind.keys() {
            match (key.name, steps) {
                ("files", Some(steps)) => {
                    for i in 0..steps.files.len() {
                        let of = of.numbered("files", i);
                        keys::<LaidOut>().into_iter().for_each(|key| self.add_if_said(&of, key));
                    }
                }
                ("steps", Some(steps)) => {
                    for (i, step) in steps.steps.iter().enumerate() {
                        let of = of.numbered("steps", i);
                        let own = keys::<Step>().into_iter().filter(|key| !["do", "as", "run"].contains(&key.name));
                        own.for_each(|key| self.add_if_said(&of, key));
                        if let Some(run) = &step.run {
                            self.run(&of.key("run"), run);
                        }
                    }
                }
                _ => self.add(of, key),
            }
        }
    }
}

/// The value at a place.
fn at<'v>(value: &'v toml::Value, way: &[String]) -> Option<&'v toml::Value> {
    way.iter().try_fold(value, |value, step| match value {
        toml::Value::Table(table) => table.get(step),
        toml::Value::Array(entries) => entries.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}
