//! The short form of tasks that differ in a parameter: `each`.

use super::value::{Wrong, tables_mut};
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Writes out tasks with `each = { KEY = [A, B] }`: a task for each value, with that parameter.
pub(super) fn expand_tasks(workload: &mut DeTable<'_>) -> Result<(), Wrong> {
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
