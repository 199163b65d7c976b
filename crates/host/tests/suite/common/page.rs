//! Checks a page's description of JSON: the schema and every field of a document.

use serde_json::Value;
use std::collections::BTreeSet;

/// Parses a JSON text, whose schema must come first and be on the page with all of its fields.
#[track_caller]
pub fn documented(text: &str, page: &str) -> Value {
    let opens = text.trim_start_matches(['{', '\n', ' ']);
    assert!(opens.starts_with("\"schema\":"), "the schema is not the first field: {opens}");
    let document: Value = serde_json::from_str(text).expect("JSON");
    let schema = document["schema"].as_str().expect("a schema");
    assert!(page.contains(&format!("`{schema}`")), "{schema}");
    let mut fields = BTreeSet::new();
    names(&document, &mut fields);
    for field in fields {
        let told = [format!("`{field}`"), format!("`{field}[]`")];
        assert!(told.iter().any(|name| page.contains(name.as_str())), "{schema}: {field} is not on the page");
    }
    document
}

fn names(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                into.insert(name.clone());
                names(value, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}
