//! The page describes every table and column as the schema has them.

use kontig_tables::TABLES;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/experimenter/tables.md");

#[test]
fn the_page_has_every_table_as_the_schema_has_it_and_no_other() {
    let (_, described) = PAGE.split_once("### ").expect("sections");
    let expected: String = TABLES.map(|table| table.markdown()).join("\n");
    assert_eq!(format!("### {described}"), expected, "the page must end so:\n{expected}");
}

#[test]
fn columns_of_one_name_are_of_one_kind_and_names_are_plain() {
    let kinds: BTreeSet<(&str, String)> = (TABLES.iter())
        .flat_map(|table| table.columns.iter().map(|column| (column.name, format!("{:?}", column.kind))))
        .filter(|(name, _)| *name != "value")
        .collect();
    let names: BTreeSet<&str> = kinds.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), kinds.len(), "{kinds:?}");
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_')), "{names:?}");
}
