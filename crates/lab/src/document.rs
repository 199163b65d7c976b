//! A TOML file together with what it takes over from its base.
//!
//! `base = "NAME"` starts a machine, workload, experiment or target from another of its kind: what
//! the file does not say is its base's. `costs` of a machine and `workload` of an experiment or a
//! case may have a base of their own, or be nothing but its name. Tables are merged key by key.
//! Zones, disks, phases, tasks and published rows are merged with the base's that have the same
//! name (a zone: the same node and kind). Other lists are replaced as a whole. A file that says
//! what its base says already is refused, so that a figure stands once.
//!
//! Two short forms are expanded here: `each` of a task, and the figures of a target's `columns`.
//!
//! Values keep their place in the file; inherited ones have the place of the name they came by.

use crate::built_in::{Form, stem};
use crate::error::{AskedWrongly, LabError};
use crate::names::{did_you_mean, unknown};
use kontig_profiles::is_path;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, ValueDeserializer};

/// A text with where it came from.
#[derive(Debug)]
pub struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) form: Form,
    /// Whether the program has it compiled in.
    pub(crate) built_in: bool,
}

/// Part of a document that can have a base.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    Costs,
    Workload,
    /// The workload of one of an experiment's cases.
    Case(usize),
}

/// The keys that a part inherits, as TOML.
struct Base {
    part: Part,
    name: String,
    /// Where the file names it.
    span: Range<usize>,
    text: String,
}

impl Source {
    pub(crate) fn read(path: &str, form: Form) -> Result<Source, LabError> {
        let text = kontig_profiles::read_text(path)?;
        Ok(Source { path: path.into(), text, form, built_in: false })
    }

    /// The built-in file of this name.
    pub(crate) fn built_in(form: Form, name: &str) -> Option<Source> {
        let (path, text) = form.files().iter().find(|(path, _)| stem(path) == name)?;
        Some(Source { path: (*path).into(), text: (*text).into(), form, built_in: true })
    }

    /// The file as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A path written in it, which starts from its own folder.
    pub(crate) fn beside(&self, path: &str) -> String {
        let folder = Path::new(&self.path).parent().unwrap_or(Path::new(""));
        folder.join(path).components().collect::<PathBuf>().to_string_lossy().into_owned()
    }

    pub(crate) fn malformed(&self, at: usize, reason: impl Into<String>) -> LabError {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        AskedWrongly::Malformed { path: self.path.clone(), line, reason: reason.into() }.into()
    }

    /// Something wrong with what it names at this place. Another file that is wrong says so itself.
    pub(crate) fn wrong_name_at(&self, at: usize, error: LabError) -> LabError {
        match error {
            LabError::Asked(AskedWrongly::Malformed { .. } | AskedWrongly::Contradictory { .. }) => error,
            error => self.malformed(at, error.to_string()),
        }
    }

    /// Hands over the whole document: with what its bases say, and short forms expanded.
    pub(crate) fn with_document<R>(&self, read: impl FnOnce(Spanned<DeTable<'_>>) -> R) -> Result<R, LabError> {
        let bases = self.bases(&mut Vec::new())?;
        let mut document = self.merged(&bases)?;
        let has_base = bases.iter().any(|base| base.part == Part::Whole);
        self.expand(document.get_mut(), has_base).map_err(|(at, reason)| self.malformed(at, reason))?;
        Ok(read(document))
    }

    fn document(&self) -> Result<Spanned<DeTable<'_>>, LabError> {
        let malformed = |e: toml::de::Error| {
            let at = e.span().map_or(0, |span| span.start);
            self.malformed(at, e.message().lines().collect::<Vec<_>>().join("; "))
        };
        DeTable::parse(&self.text).map_err(malformed)
    }

    /// Everything it takes over; `above` are the files that lead here.
    fn bases(&self, above: &mut Vec<String>) -> Result<Vec<Base>, LabError> {
        let document = self.document()?;
        let mut bases = Vec::new();
        for (part, name) in self.named_bases(document.get_ref()) {
            let span = name.span();
            let Some(name) = name.get_ref().as_str() else {
                return Err(self.malformed(span.start, "base is a name in quotes"));
            };
            let text = self.base(part, name, above).map_err(|e| self.wrong_name_at(span.start, e))?;
            bases.push(Base { part, name: name.into(), span, text });
        }
        Ok(bases)
    }

    fn named_bases<'d>(&self, document: &'d DeTable<'_>) -> Vec<(Part, &'d Spanned<DeValue<'d>>)> {
        let of = |value: Option<&'d Spanned<DeValue<'_>>>| match value?.get_ref() {
            DeValue::String(_) => value,
            DeValue::Table(table) => table.get("base"),
            _ => None,
        };
        let whole = (Part::Whole, document.get("base"));
        let cases =
            || document.get("case").and_then(|case| case.get_ref().as_array()).into_iter().flat_map(|c| c.iter());
        let of_cases = || {
            let tables = cases().enumerate().filter_map(|(i, case)| Some((i, case.get_ref().as_table()?)));
            tables.map(|(i, case)| (Part::Case(i), of(case.get("workload"))))
        };
        let parts: Vec<_> = match self.form {
            Form::Machine => vec![(Part::Costs, of(document.get("costs"))), whole],
            Form::Experiment => std::iter::once((Part::Workload, of(document.get("workload"))))
                .chain(of_cases())
                .chain([whole])
                .collect(),
            Form::Workload | Form::Target => vec![whole],
        };
        parts.into_iter().filter_map(|(part, name)| Some((part, name?))).collect()
    }

    /// The keys that a part inherits from this base, as TOML.
    fn base(&self, part: Part, name: &str, above: &mut Vec<String>) -> Result<String, LabError> {
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
            Part::Workload | Part::Case(_) => table.retain(|key, _| !["summary", "machine", "sysctls"].contains(&key)),
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
    fn merged<'a>(&'a self, bases: &'a [Base]) -> Result<Spanned<DeTable<'a>>, LabError> {
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

    /// Writes the short forms out.
    fn expand(&self, document: &mut DeTable<'_>, has_base: bool) -> Result<(), Wrong> {
        match self.form {
            Form::Machine => Ok(()),
            Form::Workload => expand_tasks(document),
            Form::Experiment => {
                let of = |table: &mut DeTable<'_>| match table.get_mut("workload").map(Spanned::get_mut) {
                    Some(DeValue::Table(workload)) => expand_tasks(workload),
                    _ => Ok(()),
                };
                of(document)?;
                tables_mut(document, "case").try_for_each(of)
            }
            Form::Target => choose_columns(document, has_base),
        }
    }
}

/// A place in the file and what is wrong there.
type Wrong = (usize, String);

/// The tables of a list; none if there is no such list.
fn tables_mut<'d, 'a>(table: &'d mut DeTable<'a>, key: &str) -> impl Iterator<Item = &'d mut DeTable<'a>> {
    let list = table.get_mut(key).and_then(|list| match list.get_mut() {
        DeValue::Array(list) => Some(list),
        _ => None,
    });
    list.into_iter().flat_map(|list| list.iter_mut()).filter_map(|entry| match entry.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    })
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
            let of = |value: Spanned<DeValue<'a>>| Spanned::new(span.clone(), placed_value(value.into_inner(), span));
            DeValue::Array(array.into_iter().map(of).collect())
        }
        leaf => leaf,
    }
}

/// By what entries of a list are the same in a file and its base; none of lists that are replaced.
fn identity(list: &str) -> Option<&'static [&'static str]> {
    match list {
        "zone" => Some(&["node", "kind"]),
        "disk" | "phase" | "task" => Some(&["name"]),
        "row" => Some(&["case", "name"]),
        _ => None,
    }
}

/// A value without its place, to be compared.
fn plain(value: &DeValue<'_>) -> Option<toml::Value> {
    toml::Value::deserialize(ValueDeserializer::from(Spanned::new(0..0, value.clone()))).ok()
}

fn same(a: &DeValue<'_>, b: &DeValue<'_>) -> bool {
    match (plain(a), plain(b)) {
        (Some(toml::Value::Integer(a)), Some(toml::Value::Float(b)))
        | (Some(toml::Value::Float(b)), Some(toml::Value::Integer(a))) => a as f64 == b,
        (Some(a), Some(b)) => a == b,
        _ => false,
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
                if !names.contains(&name.as_ref()) && name != "source" && same(ours, &theirs) {
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
    let of = |entry: &DeValue<'_>| match entry {
        DeValue::Table(table) => {
            names.iter().map(|name| table.get(*name).and_then(|value| plain(value.get_ref()))).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let mut own: Vec<Spanned<DeValue<'a>>> = std::mem::replace(ours, DeArray::new()).into_iter().collect();
    for entry in theirs {
        let Some(i) = own.iter().position(|own| of(own.get_ref()) == of(entry.get_ref())) else {
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
    own.into_iter().for_each(|entry| ours.push(entry));
    Ok(())
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

/// Writes out tasks with `each = { KEY = [A, B] }`: a task for each value, with that parameter.
fn expand_tasks(workload: &mut DeTable<'_>) -> Result<(), Wrong> {
    for phase in tables_mut(workload, "phase") {
        if let Some(DeValue::Array(tasks)) = phase.get_mut("task").map(Spanned::get_mut) {
            let mut all = DeArray::new();
            for task in std::mem::replace(tasks, DeArray::new()) {
                copies(task)?.into_iter().for_each(|task| all.push(task));
            }
            *tasks = all;
        }
    }
    Ok(())
}

/// The most tasks that one entry stands for.
const MOST_TASKS: usize = 1 << 16;

fn copies(task: Spanned<DeValue<'_>>) -> Result<Vec<Spanned<DeValue<'_>>>, Wrong> {
    let DeValue::Table(table) = task.get_ref() else { return Ok(vec![task]) };
    let Some((key, each)) = table.get_key_value("each") else { return Ok(vec![task]) };
    let at = key.span().start;
    let form = || (at, "each has a list for each parameter that differs: each = { tree = [0, 1, 2] }".to_string());
    let DeValue::Table(each) = each.get_ref() else { return Err(form()) };
    let lists = each.iter().map(|(key, list)| Some((key, list.get_ref().as_array()?)));
    let lists = lists.collect::<Option<Vec<_>>>().ok_or_else(form)?;
    let n = lists.iter().map(|(_, list)| list.len()).max().filter(|n| *n > 0).ok_or_else(form)?;
    if let Some((key, list)) = lists.iter().find(|(_, list)| list.len() != n) {
        let reason =
            format!("each: {} has {} values where another has {n}: give both as many", key.get_ref(), list.len());
        return Err((at, reason));
    }
    if n > MOST_TASKS {
        return Err((at, format!("each: {n} tasks, at most {MOST_TASKS}")));
    }
    let Some(DeValue::String(name)) = table.get("name").map(Spanned::get_ref) else {
        return Err((at, "a task with each needs a name: its copies are called after it, \"name 1\" and so on".into()));
    };
    let with = |i: usize| {
        let mut copy = table.clone();
        copy.remove("each");
        let named = Cow::Owned(format!("{name} {}", i + 1));
        if let Some(name) = copy.get_mut("name") {
            *name.get_mut() = DeValue::String(named);
        }
        let Some(DeValue::Table(run)) = copy.get_mut("run").map(Spanned::get_mut) else { return Err(form()) };
        for (key, list) in &lists {
            if run.insert((*key).clone(), list[i].clone()).is_some() {
                let reason = format!("{} stands in run and in each: leave out one", key.get_ref());
                return Err((key.span().start, reason));
            }
        }
        Ok(Spanned::new(task.span(), DeValue::Table(copy)))
    };
    (0..n).map(with).collect()
}

/// Of figures of all `columns` of a publication, keeps those of a target's variants, in their
/// order, and those of its null test. A row without any of them is another target's, as is a series
/// of another column. A figure that was not published is nan.
fn choose_columns(target: &mut DeTable<'_>, has_base: bool) -> Result<(), Wrong> {
    let Some(columns) = column_names(target, "columns")? else {
        return match target.get_key_value("null_test") {
            Some((key, _)) => {
                Err((key.span().start, "null_test names two of a target's columns: say columns = [\"…\"]".into()))
            }
            None => Ok(()),
        };
    };
    target.remove("columns");
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let number = |(name, at): &(String, usize)| {
        names.iter().position(|column| column == name).ok_or_else(|| (*at, did_you_mean("column", name, &names)))
    };
    let Some(variants) = column_names(target, "variants")? else { return Ok(()) };
    let variants = variants.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let null_test = match column_names(target, "null_test")? {
        Some(names) => {
            Some((target.remove_entry("null_test"), names.iter().map(number).collect::<Result<Vec<_>, _>>()?))
        }
        None => None,
    };
    if let Some((Some((key, _)), columns)) = &null_test
        && columns.len() != 2
    {
        return Err((key.span().start, "null_test names the two columns of one kernel measured twice".into()));
    }
    // The null test's own columns have no other.
    let null_test = null_test.map(|(_, columns)| columns).filter(|columns| *columns != variants);
    if let Some(DeValue::Array(rows)) = target.get_mut("row").map(Spanned::get_mut) {
        let mut chosen = DeArray::new();
        for mut row in std::mem::replace(rows, DeArray::new()) {
            let keep = match row.get_mut() {
                DeValue::Table(row) => choose(row, &names, &variants, null_test.as_deref(), has_base)?,
                _ => true,
            };
            if keep {
                chosen.push(row);
            }
        }
        *rows = chosen;
    }
    let is_chosen = |name: &str| variants.iter().any(|i| names[*i] == name);
    for key in ["series", "shares"] {
        if let Some(DeValue::Array(list)) = target.get_mut(key).map(Spanned::get_mut) {
            let elsewhere = |entry: &Spanned<DeValue<'_>>| {
                let variant = entry.get_ref().as_table().and_then(|entry| entry.get("variant")?.get_ref().as_str());
                variant.is_some_and(|name| names.contains(&name) && !is_chosen(name))
            };
            let all = std::mem::replace(list, DeArray::new());
            *list = all.into_iter().filter(|entry| !elsewhere(entry)).collect();
        }
    }
    Ok(())
}

/// Names of columns, each with its place; none if there is no such key.
fn column_names(target: &DeTable<'_>, key: &str) -> Result<Option<Vec<(String, usize)>>, Wrong> {
    let Some((place, list)) = target.get_key_value(key) else { return Ok(None) };
    let name = |name: &Spanned<DeValue<'_>>| Some((name.get_ref().as_str()?.to_owned(), name.span().start));
    let names = list.get_ref().as_array().and_then(|list| list.iter().map(name).collect());
    names.map(Some).ok_or_else(|| (place.span().start, format!("{key} is a list of names in quotes")))
}

/// Keeps one row's figures of these columns; false if none of them was published.
fn choose(
    row: &mut DeTable<'_>,
    columns: &[&str],
    variants: &[usize],
    null_test: Option<&[usize]>,
    has_base: bool,
) -> Result<bool, Wrong> {
    let Some((key, values)) = row.get_key_value("values") else { return Ok(true) };
    let (span, DeValue::Array(values)) = (key.span(), values.get_ref()) else { return Ok(true) };
    if values.len() != columns.len() {
        return Err((span.start, format!("{} values for {} columns", values.len(), columns.len())));
    }
    let is_nan = |value: &DeValue<'_>| plain(value).and_then(|value| value.as_float()).is_some_and(f64::is_nan);
    if has_base && variants.iter().all(|i| is_nan(values[*i].get_ref())) {
        return Ok(false);
    }
    let of = |chosen: &[usize]| {
        let values = chosen.iter().map(|i| values[*i].clone()).collect();
        Spanned::new(span.clone(), DeValue::Array(values))
    };
    let (values, null_test) = (of(variants), null_test.map(of));
    row.insert(Spanned::new(span.clone(), Cow::Borrowed("values")), values);
    if let Some(null_test) = null_test {
        row.insert(Spanned::new(span, Cow::Borrowed("null_test")), null_test);
    }
    Ok(true)
}
