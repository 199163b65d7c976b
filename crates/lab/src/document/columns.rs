//! The short form of a target's figures: those of all `columns` of a publication.

use super::value::{Wrong, plain};
use crate::names::did_you_mean;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Of figures of all `columns` of a publication, keeps those of a target's variants, in their
/// order, and those of its null test. A row without any of them is another target's, as is a series
/// of another column. A figure that was not published is nan.
pub(super) fn choose_columns(target: &mut DeTable<'_>, has_base: bool) -> Result<(), Wrong> {
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
