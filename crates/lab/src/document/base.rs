//! The keys that a document inherits from its base, or a part of it from a base of its own.

use super::file::Source;
use super::value::{Wrong, plain, same};
use crate::built_in::Form;
use crate::names::{nearest, unknown};
use kontig_error::{AskedWrongly, Error};
use kontig_profiles::is_path;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

/// Part of a document that can have a base.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Whole,
    Costs,
    Workload,
    /// The workload of one of an experiment's cases.
    Case(usize),
}

/// The keys that a part inherits, as TOML.
pub(super) struct Base {
    pub(super) part: Part,
    name: String,
    /// Where the file names it.
    span: Range<usize>,
    text: String,
    /// Whether the file may repeat it.
    may_repeat: bool,
}

impl Source {
    fn document(&self) -> Result<Spanned<DeTable<'_>>, Error> {
        DeTable::parse(&self.text).map_err(|e| self.unreadable_as_asked(&e))
    }

    /// Everything it takes over; `above` are the files that lead here.
    pub(super) fn bases(&self, above: &mut Vec<String>) -> Result<Vec<Base>, Error> {
        let document = self.document()?;
        let mut bases = Vec::new();
        for (part, name) in self.named_bases(document.get_ref()) {
            let span = name.span();
            let Some(name) = name.get_ref().as_str() else {
                return Err(self.malformed(span.start, "base is a name in quotes"));
            };
            let text = self.base(part, name, above).map_err(|e| self.wrong_name_at(span.start, e))?;
            bases.push(Base { part, name: name.into(), span, text, may_repeat: self.may_repeat });
        }
        Ok(bases)
    }

    fn named_bases<'d>(&self, document: &'d DeTable<'_>) -> Vec<(Part, &'d Spanned<DeValue<'d>>)> {
        let named = |value: Option<&'d Spanned<DeValue<'_>>>| match value?.get_ref() {
            DeValue::String(_) => value,
            DeValue::Table(table) => table.get("base"),
            _ => None,
        };
        let whole = (Part::Whole, document.get("base"));
        let cases =
            || document.get("case").and_then(|case| case.get_ref().as_array()).into_iter().flat_map(|c| c.iter());
        let of_cases = || {
            let tables = cases().enumerate().filter_map(|(i, case)| Some((i, case.get_ref().as_table()?)));
            tables.map(|(i, case)| (Part::Case(i), named(case.get("workload"))))
        };
        let parts: Vec<_> = match self.form {
            Form::Machine => vec![(Part::Costs, named(document.get("costs"))), whole],
            Form::Experiment => std::iter::once((Part::Workload, named(document.get("workload"))))
                .chain(of_cases())
                .chain([whole])
                .collect(),
            Form::Workload | Form::Target => vec![whole],
        };
        parts.into_iter().filter_map(|(part, name)| Some((part, name?))).collect()
    }

    /// The keys that a part inherits from this base, as TOML.
    fn base(&self, part: Part, name: &str, above: &mut Vec<String>) -> Result<String, Error> {
        let form = match part {
            Part::Whole => self.form,
            Part::Costs => Form::Machine,
            Part::Workload | Part::Case(_) => Form::Workload,
        };
        let of = match is_path(name) && !self.built_in {
            true => Source::read(&self.beside(name), form)?,
            false => Source::built_in(form, name).ok_or_else(|| unknown(form.name(), name, form.names()))?,
        };
        let depth = above.len();
        above.push(self.id());
        if above.contains(&of.id()) {
            let reason = format!("base '{name}' leads back to {}: a {} is not its own base", of.path, form.name());
            return Err(AskedWrongly::Value(reason).into());
        }
        of.check_numbers()?;
        let bases = of.bases(above)?;
        above.truncate(depth);
        let document = of.merged(&bases)?;
        let at_top = |e: toml::de::Error| of.malformed(0, e.message().lines().collect::<Vec<_>>().join("; "));
        let mut table = toml::Table::deserialize(Deserializer::from(document)).map_err(at_top)?;
        match part {
            Part::Whole => table.retain(|key, _| !form.own().contains(&key)),
            Part::Costs => {
                table = match table.remove("costs") {
                    Some(toml::Value::Table(costs)) => costs,
                    _ => return Err(of.malformed(0, "missing field `costs`")),
                }
            }
            Part::Workload | Part::Case(_) => table.retain(|key, _| !["summary", "machine"].contains(&key)),
        }
        if !of.built_in {
            of.make_absolute(&mut table);
        }
        toml::to_string(&table).map_err(|e| of.malformed(0, e.to_string()))
    }

    /// The same for the same file, however it is named.
    fn id(&self) -> String {
        match std::fs::canonicalize(&self.path) {
            Ok(path) if !self.built_in => path.to_string_lossy().into_owned(),
            _ => self.path.clone(),
        }
    }

    /// Paths in a table start from this file's folder, wherever the table is used.
    fn make_absolute(&self, table: &mut toml::Table) {
        const NAMES: [&str; 4] = ["machine", "target", "profile", "file"];
        for (key, value) in table.iter_mut() {
            match value {
                toml::Value::String(name) if NAMES.contains(&key.as_str()) && (is_path(name) || key == "file") => {
                    if let Ok(path) = std::path::absolute(self.beside(name)) {
                        *name = path.to_string_lossy().into_owned();
                    }
                }
                toml::Value::Table(table) => self.make_absolute(table),
                toml::Value::Array(array) => {
                    array.iter_mut().filter_map(toml::Value::as_table_mut).for_each(|table| self.make_absolute(table));
                }
                _ => {}
            }
        }
    }

    /// The document with what these bases say.
    pub(super) fn merged<'a>(&'a self, bases: &'a [Base]) -> Result<Spanned<DeTable<'a>>, Error> {
        let mut document = self.document()?;
        if let (Form::Machine, None, Some((key, _))) =
            (self.form, document.get_ref().get("base"), document.get_ref().get_key_value("nodes"))
        {
            let reason = "nodes says how many nodes of its base a machine keeps: name the base, or leave it out";
            return Err(self.malformed(key.span().start, reason));
        }
        for base in bases {
            let of_base = DeTable::parse(&base.text).map_err(|e| self.malformed(base.span.start, e.message()))?;
            let mut of_base = placed(of_base.into_inner(), &base.span);
            if base.part == Part::Whole {
                // A part with a base of its own takes nothing from this one.
                for other in bases {
                    match other.part {
                        Part::Costs => of_base.remove("costs"),
                        Part::Workload => of_base.remove("workload"),
                        Part::Whole | Part::Case(_) => None,
                    };
                }
            }
            self.put(document.get_mut(), base, of_base).map_err(|(at, reason)| self.malformed(at, reason))?;
        }
        Ok(document)
    }

    fn put<'a>(&self, document: &mut DeTable<'a>, base: &Base, mut of_base: DeTable<'a>) -> Result<(), Wrong> {
        let part = match base.part {
            Part::Whole => {
                document.remove("base");
                match self.form {
                    Form::Machine => keep_nodes(document, base, &mut of_base)?,
                    Form::Experiment => add_assumptions(document, &mut of_base),
                    Form::Workload | Form::Target => {}
                }
                return fill(document, of_base, base, &[]);
            }
            Part::Costs => document.get_mut("costs"),
            Part::Workload => document.get_mut("workload"),
            Part::Case(i) => document
                .get_mut("case")
                .and_then(|cases| match cases.get_mut() {
                    DeValue::Array(cases) => cases.get_mut(i),
                    _ => None,
                })
                .and_then(|case| match case.get_mut() {
                    DeValue::Table(case) => case.get_mut("workload"),
                    _ => None,
                }),
        };
        match part.map(Spanned::get_mut) {
            Some(DeValue::Table(own)) => {
                own.remove("base");
                fill(own, of_base, base, &[])
            }
            Some(own) => {
                *own = DeValue::Table(of_base);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// A table whose every key and value stands at this place.
fn placed<'a>(table: DeTable<'a>, span: &Range<usize>) -> DeTable<'a> {
    let mut all = DeTable::new();
    for (key, value) in table {
        all.insert(
            Spanned::new(span.clone(), key.into_inner()),
            Spanned::new(span.clone(), placed_value(value.into_inner(), span)),
        );
    }
    all
}

fn placed_value<'a>(value: DeValue<'a>, span: &Range<usize>) -> DeValue<'a> {
    match value {
        DeValue::Table(table) => DeValue::Table(placed(table, span)),
        DeValue::Array(array) => {
            let placed =
                |value: Spanned<DeValue<'a>>| Spanned::new(span.clone(), placed_value(value.into_inner(), span));
            DeValue::Array(array.into_iter().map(placed).collect())
        }
        leaf => leaf,
    }
}

/// By what entries of a list are the same in a file and its base; none of lists that are replaced.
fn identity(list: &str) -> Option<&'static [&'static str]> {
    match list {
        "zone" => Some(&["node", "kind"]),
        "disk" | "phase" | "task" | "group" => Some(&["name"]),
        "row" => Some(&["case", "name"]),
        _ => None,
    }
}

/// Adds what the base says and the file does not. `names` are the keys by which the file says which
/// entry it means.
fn fill<'a>(own: &mut DeTable<'a>, of_base: DeTable<'a>, base: &Base, names: &[&str]) -> Result<(), Wrong> {
    for (key, theirs) in of_base {
        let name = key.get_ref().clone();
        let Some((place, _)) = own.get_key_value(name.as_ref()) else {
            own.insert(key, theirs);
            continue;
        };
        let at = place.span().start;
        let Some(ours) = own.get_mut(name.as_ref()) else { continue };
        match (ours.get_mut(), theirs.into_inner()) {
            (DeValue::Table(ours), DeValue::Table(theirs)) => {
                // Work of another kind has other parameters.
                let kind = |table: &DeTable<'_>| table.get("kind").and_then(|kind| plain(kind.get_ref()));
                if kind(ours).is_some_and(|ours| Some(ours) != kind(&theirs)) {
                    continue;
                }
                check_source(ours, &theirs, at, &name, base)?;
                fill(ours, theirs, base, &[])?;
            }
            (DeValue::Array(ours), DeValue::Array(theirs)) if identity(&name).is_some() => {
                fill_list(ours, theirs, base, &name)?;
            }
            (ours, theirs) => {
                if !base.may_repeat && !names.contains(&name.as_ref()) && name != "source" && same(ours, &theirs) {
                    let reason = format!("'{name}' says what base {} says already: leave it out", base.name);
                    return Err((at, reason));
                }
            }
        }
    }
    Ok(())
}

/// Merges the entries of a list that are the same in a file and its base; those of the file alone
/// follow.
fn fill_list<'a>(ours: &mut DeArray<'a>, theirs: DeArray<'a>, base: &Base, list: &str) -> Result<(), Wrong> {
    let names = identity(list).unwrap_or_default();
    let identity = |entry: &DeValue<'_>| match entry {
        DeValue::Table(table) => {
            names.iter().map(|name| table.get(*name).and_then(|value| plain(value.get_ref()))).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let mut own: Vec<Spanned<DeValue<'a>>> = std::mem::replace(ours, DeArray::new()).into_iter().collect();
    for entry in theirs {
        let Some(i) = own.iter().position(|own| identity(own.get_ref()) == identity(entry.get_ref())) else {
            ours.push(entry);
            continue;
        };
        let mut own = own.remove(i);
        let at = own.span().start;
        if let (DeValue::Table(own), DeValue::Table(theirs)) = (own.get_mut(), entry.into_inner()) {
            if own.keys().all(|key| names.contains(&key.get_ref().as_ref())) {
                return Err((at, format!("this {list} says nothing but what base {} says: leave it out", base.name)));
            }
            check_source(own, &theirs, at, list, base)?;
            fill(own, theirs, base, names)?;
        }
        ours.push(own);
    }
    let known: Vec<String> = ours.iter().filter_map(name_of).map(str::to_owned).collect();
    // Of two of one name, the reader of the whole complains.
    let is_new =
        |entry: &Spanned<DeValue<'_>>| name_of(entry).is_none_or(|name| known.iter().all(|other| other != name));
    for (i, entry) in own.iter().enumerate().filter(|(_, entry)| is_new(entry)) {
        match list {
            "task" if !says_kind(entry) => return Err(unknown_entry(entry, "task", &known, base)),
            "phase" if !is_new_phase(&own[i..]) => return Err(unknown_entry(entry, "phase", &known, base)),
            _ => {}
        }
    }
    own.into_iter().for_each(|entry| ours.push(entry));
    Ok(())
}

fn name_of<'e>(entry: &'e Spanned<DeValue<'_>>) -> Option<&'e str> {
    entry.get_ref().as_table()?.get("name")?.get_ref().as_str()
}

/// Whether a task that no base has says what it runs.
fn says_kind(task: &Spanned<DeValue<'_>>) -> bool {
    let run = task.get_ref().as_table().and_then(|task| task.get("run")?.get_ref().as_table());
    run.is_some_and(|run| run.contains_key("kind"))
}

/// Whether the first of these phases, which follow all of a base's, can be meant as one of its own:
/// its tasks say what they run, and it is measured or another after it is.
fn is_new_phase(phases: &[Spanned<DeValue<'_>>]) -> bool {
    let table = |phase: &Spanned<DeValue<'_>>, key: &str| match phase.get_ref().as_table()?.get(key)?.get_ref() {
        DeValue::Array(tasks) => Some(tasks.iter().all(says_kind)),
        value => value.as_bool(),
    };
    phases.first().is_none_or(|first| table(first, "task").unwrap_or(true))
        && phases.iter().any(|phase| table(phase, "measured") == Some(true))
}

/// An entry that can only be meant as one of a base's, whose name it misses.
fn unknown_entry(entry: &Spanned<DeValue<'_>>, what: &str, known: &[String], base: &Base) -> Wrong {
    let name = entry.get_ref().as_table().and_then(|entry| entry.get("name"));
    let at = name.map_or_else(|| entry.span(), Spanned::span).start;
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let has = match known.as_slice() {
        [] => format!("base {} has no {what} with a name here", base.name),
        known => format!("base {} has {} here", base.name, known.join(", ")),
    };
    let reason = match name_of(entry) {
        None => format!("a {what} without a name: which is meant? {has}"),
        Some(name) => match nearest(what, name, &known) {
            Some(nearest) => format!("{nearest} {has}"),
            None => format!("unknown {what} '{name}'; {has}"),
        },
    };
    (at, reason)
}

/// A changed figure needs a source of its own, since the base's describes the old one.
fn check_source(own: &DeTable<'_>, theirs: &DeTable<'_>, at: usize, name: &str, base: &Base) -> Result<(), Wrong> {
    match theirs.contains_key("source") && !own.contains_key("source") {
        true => Err((at, format!("'{name}' differs from that of base {}: say from where, source = \"…\"", base.name))),
        false => Ok(()),
    }
}

/// Leaves out the zones of nodes that a machine does not take over from its base.
fn keep_nodes(document: &mut DeTable<'_>, base: &Base, of_base: &mut DeTable<'_>) -> Result<(), Wrong> {
    let Some((key, nodes)) = document.remove_entry("nodes") else { return Ok(()) };
    let node = |zone: &Spanned<DeValue<'_>>| match zone.get_ref() {
        DeValue::Table(zone) => zone.get("node").and_then(|node| plain(node.get_ref())?.as_integer()).unwrap_or(0),
        _ => 0,
    };
    let Some(DeValue::Array(zones)) = of_base.get_mut("zone").map(Spanned::get_mut) else { return Ok(()) };
    let most = zones.iter().map(node).max().unwrap_or(0);
    let Some(nodes) = plain(nodes.get_ref()).and_then(|n| n.as_integer()).filter(|n| (1..=most).contains(n)) else {
        let reason = format!(
            "nodes: base {} has {}: say how many fewer this machine keeps, or leave it out",
            base.name,
            most + 1
        );
        return Err((key.span().start, reason));
    };
    *zones = std::mem::replace(zones, DeArray::new()).into_iter().filter(|zone| node(zone) < nodes).collect();
    Ok(())
}

/// An experiment assumes what its base does, besides what it says itself.
fn add_assumptions(document: &mut DeTable<'_>, of_base: &mut DeTable<'_>) {
    if let Some(DeValue::String(own)) = document.get_mut("assumptions").map(Spanned::get_mut)
        && let Some(DeValue::String(theirs)) = of_base.remove("assumptions").map(Spanned::into_inner)
    {
        *own = Cow::Owned(format!("{own} {theirs}"));
    }
}
