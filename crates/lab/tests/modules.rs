//! The laboratory's modules: none uses one that uses it, however many lie between.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules a text uses, but for its tests.
fn used(text: &str, modules: &[&str]) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let after = text.split("crate::").skip(1);
    // Of `crate::{a, b::c}` those that a module's name begins.
    let names = after.flat_map(|rest| match rest.strip_prefix('{') {
        Some(list) => list.split(['}', ';']).next().unwrap_or_default().split(", ").collect(),
        None => vec![rest],
    });
    let first_word =
        |name: &str| name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_string);
    names.filter_map(first_word).filter(|name| modules.contains(&name.as_str())).collect()
}

/// The texts of a module and what is below it.
fn texts(path: &Path) -> String {
    let below = fs::read_dir(path).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let below: String = below.map(|path| texts(&path.with_extension(""))).collect();
    below + &fs::read_to_string(path.with_extension("rs")).unwrap_or_default()
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("it is there");
    let declared = lib.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    let modules: Vec<&str> = declared.map(|name| name.trim_end_matches(';')).collect();
    let of = |module: &&str| {
        let mut used = used(&texts(&src.join(module)), &modules);
        used.remove(*module);
        (module.to_string(), used)
    };
    let mut left: BTreeMap<String, BTreeSet<String>> = modules.iter().map(of).collect();
    assert!(left["run"].contains("plan") && left["session"].contains("queue"), "uses are found");
    loop {
        let last = left.iter().find(|(_, used)| used.iter().all(|used| !left.contains_key(used)));
        let Some(last) = last.map(|(module, _)| module.clone()) else { break };
        left.remove(&last);
    }
    assert!(left.is_empty(), "these use each other, or what does: {left:?}");
}
