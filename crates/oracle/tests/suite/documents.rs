//! The documents hold together: every section that is cited exists, and every link leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files with one of these endings below a folder, generated ones left out.
fn files(dir: &Path, endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path, endings));
        } else if endings.iter().any(|e| name.ends_with(e)) {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            found.push((path, text));
        }
    }
    found
}

/// The numbers of the behaviour document's headings.
fn sections() -> BTreeSet<String> {
    let heading = |line: &str| {
        let number = line.trim_start_matches('#').split_whitespace().next()?.trim_end_matches('.').to_string();
        (line.starts_with('#') && number.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
    };
    let chapters = files(&root().join("docs/kernel/kernel-behaviour"), &[".md"]);
    chapters.iter().flat_map(|(_, text)| text.lines().filter_map(heading)).collect()
}

/// The section numbers a text cites: those after a `§`, and those in `section = "…"`.
fn cited(text: &str) -> impl Iterator<Item = &str> {
    ["§", "section = \""].into_iter().flat_map(move |before| {
        text.split(before).skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            rest[..end].trim_end_matches('.')
        })
    })
}

#[test]
fn every_section_that_is_cited_exists() {
    let (sections, mut seen) = (sections(), 0);
    for folder in ["crates", "profiles", "machines", "docs/kernel/kernel-behaviour"] {
        for (path, text) in files(&root().join(folder), &[".rs", ".toml", ".md"]) {
            // Other documents than this one have sections, too.
            let ours = text.contains("kernel-behaviour") || text.contains("section = \"");
            for section in cited(&text).filter(|s| ours && !s.is_empty()) {
                assert!(sections.contains(section), "{}: there is no §{section}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn every_link_of_a_document_leads_to_a_file() {
    let mut seen = 0;
    for (path, text) in files(&root(), &[".md"]) {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            // Formulas look like links, too: `f](=0)`.
            if !file.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') || file.contains("://") {
                continue;
            }
            let target = path.parent().expect("a folder").join(file);
            assert!(target.exists(), "{}: nothing at '{link}'", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
