//! Values of a TOML document that know their place in it.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A place in the file and what is wrong there.
pub(super) type Wrong = (usize, String);

/// The tables of a list; none if there is no such list.
pub(super) fn tables_mut<'d, 'a>(table: &'d mut DeTable<'a>, key: &str) -> impl Iterator<Item = &'d mut DeTable<'a>> {
    let list = table.get_mut(key).and_then(|list| match list.get_mut() {
        DeValue::Array(list) => Some(list),
        _ => None,
    });
    list.into_iter().flat_map(|list| list.iter_mut()).filter_map(|entry| match entry.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    })
}

/// A value without its place, to be compared.
pub(super) fn plain(value: &DeValue<'_>) -> Option<toml::Value> {
    toml::Value::deserialize(ValueDeserializer::from(Spanned::new(0..0, value.clone()))).ok()
}

pub(super) fn same(a: &DeValue<'_>, b: &DeValue<'_>) -> bool {
    match (plain(a), plain(b)) {
        (Some(toml::Value::Integer(a)), Some(toml::Value::Float(b)))
        | (Some(toml::Value::Float(b)), Some(toml::Value::Integer(a))) => a as f64 == b,
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}
