//! Parameters of the workload that were asked for: read, and set in every workload that has them.

use crate::experiment::{Experiment, Variant};
use crate::plan::room;
use crate::{catalog, parameters};
use kontig_error::{AskedWrongly, Error};
use kontig_text::parse_size;
use kontig_workload::{Room, Workload, shown};

/// A parameter of the workload, as it was asked for.
pub(super) struct Parameter {
    /// The user's name for it.
    pub(super) name: String,
    /// The whole name, by which a variant has it.
    pub(super) path: String,
    /// In the order asked for; several make a variant each.
    pub(super) values: Vec<toml::Value>,
    room: Option<Room>,
}

/// The workloads that an experiment's cases run, or its own.
fn workloads(e: &mut Experiment) -> Vec<&mut Workload> {
    let has_own = e.case.is_empty() || e.case.iter().any(|case| case.workload.is_none());
    let own = has_own.then_some(&mut e.workload);
    own.into_iter().chain(e.case.iter_mut().filter_map(|case| case.workload.as_mut())).collect()
}

/// Something wrong with a parameter asked for.
fn of_with(name: &str, reason: &str) -> Error {
    AskedWrongly::Value(format!("--with {name}: {reason}")).into()
}

/// The parameters asked for. Each has one name here, and each of its values appears once.
pub(super) fn parameters_of(
    e: &Experiment,
    machine: Option<&String>,
    begins_with_snapshot: bool,
    changes: &[(String, Vec<String>)],
) -> Result<Vec<Parameter>, Error> {
    // A snapshot's machine is as large as its host.
    let machine = machine.unwrap_or(&e.machine);
    let has_room = !begins_with_snapshot && !changes.is_empty();
    let room = has_room.then(|| Ok::<_, Error>(room(&catalog::machine(machine)?.0))).transpose()?;
    let mut e = e.clone();
    let mut asked: Vec<Parameter> = Vec::new();
    for (name, values) in changes {
        let mut of = workloads(&mut e).into_iter().map(|w| parameters::path(w, name).map(|path| (path, &*w)));
        let mut found = of.next().unwrap_or_else(|| Err("there is no workload".into()));
        // Of several cases' workloads, one may have it.
        if let Some(other) = of.find(Result::is_ok).filter(|_| found.is_err()) {
            found = other;
        }
        let wrong = |reason: String| of_with(name, &reason);
        let (path, workload) = found.map_err(wrong)?;
        if asked.iter().any(|other| other.path == path) {
            return Err(wrong(format!("{path} is set twice")));
        }
        let values = values.iter().map(|text| parameters::read(workload, name, text, room.as_ref()));
        let values: Vec<toml::Value> = values.collect::<Result<_, _>>().map_err(wrong)?;
        if let Some((_, twice)) =
            values.iter().enumerate().find(|(i, value)| values[..*i].iter().any(|other| are_same(other, value)))
        {
            return Err(wrong(format!("the value {} is given twice", shown(twice))));
        }
        asked.push(Parameter { name: name.clone(), path, values, room: room.clone() });
    }
    Ok(asked)
}

/// Whether two values of a parameter are one, such as `"1 GiB"` and `"1024 MiB"`.
fn are_same(a: &toml::Value, b: &toml::Value) -> bool {
    let bytes = |value: &toml::Value| value.as_str().and_then(parse_size);
    a == b || bytes(a).is_some_and(|bytes_of_a| bytes(b) == Some(bytes_of_a))
}

/// Sets the parameters that have one value in every workload that has them, with a line each that
/// says so. Of those with several values every variant has each.
pub(super) fn set_parameters(e: &mut Experiment, asked: &[Parameter]) -> Result<Vec<String>, Error> {
    let wrong = |refused: parameters::Refused| of_with(&refused.name, &refused.reason);
    let room = asked.first().and_then(|parameter| parameter.room.as_ref());
    let mut said = Vec::new();
    for workload in workloads(e) {
        let own: Vec<&Parameter> = asked.iter().filter(|of| parameters::path(workload, &of.name).is_ok()).collect();
        for Parameter { name, path, values, .. } in own.iter().filter(|of| of.values.len() == 1) {
            let before = parameters::text(workload, name);
            said.push(format!("{path} = {}; the workload's own is {before}", shown(&values[0])));
        }
        // Of those with several values every variant has its own.
        let values: Vec<(&str, &toml::Value)> = own.iter().map(|of| (of.name.as_str(), &of.values[0])).collect();
        *workload = parameters::set(workload, &values, room).map_err(wrong)?;
    }
    said.dedup();
    for of in asked.iter().filter(|of| of.values.len() == 1) {
        // So that a run says what it was given. Of several cases' workloads one may lack it.
        if workloads(e).iter().all(|w| parameters::path(w, &of.name).is_ok()) {
            e.variant.iter_mut().for_each(|v| drop(v.with.insert(of.path.clone(), of.values[0].clone())));
        }
    }
    for of in asked.iter().filter(|of| of.values.len() > 1) {
        let each = |v: &Variant| {
            let with = |value: &toml::Value| {
                let mut v = v.clone();
                v.with.insert(of.path.clone(), value.clone());
                v
            };
            of.values.iter().map(with).collect::<Vec<_>>()
        };
        e.variant = e.variant.iter().flat_map(each).collect();
    }
    let variants = e.variant.clone();
    for workload in workloads(e) {
        for v in variants.iter().filter(|v| !v.with.is_empty()) {
            let values: Vec<(&str, &toml::Value)> = v.with.iter().map(|(path, value)| (path.as_str(), value)).collect();
            let as_asked = |refused: parameters::Refused| {
                let asked = asked.iter().find(|of| of.path == refused.name).map(|of| of.name.clone());
                wrong(parameters::Refused { name: asked.unwrap_or(refused.name), ..refused })
            };
            parameters::set(workload, &values, room).map_err(as_asked)?;
        }
    }
    Ok(said)
}
