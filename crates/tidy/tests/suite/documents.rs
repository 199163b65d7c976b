//! The documents hold together: every section that is cited exists, every link leads somewhere, and
//! the README's figures are those of the page they come from.

use kontig_tidy::{files, root};
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn texts(folder: &Path, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) => (path, text),
        Err(e) => panic!("{}: {e}", path.display()),
    };
    files(folder, extensions).into_iter().map(read).collect()
}

/// The numbers of the behaviour document's headings.
fn sections() -> BTreeSet<String> {
    let heading = |line: &str| {
        let number = line.trim_start_matches('#').split_whitespace().next()?.trim_end_matches('.').to_string();
        (line.starts_with('#') && number.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
    };
    let chapters = texts(&root().join("docs/kernel/kernel-behaviour"), &["md"]);
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
        for (path, text) in texts(&root().join(folder), &["rs", "toml", "md"]) {
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
    for (path, text) in texts(root(), &["md"]) {
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

/// The numbers that a pattern's groups find in a text, whose line breaks are spaces.
fn numbers(text: &str, pattern: &str) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = Regex::new(pattern).expect("a valid pattern").captures(&text);
    let found = found.unwrap_or_else(|| panic!("nothing like '{pattern}'"));
    found.iter().skip(1).map(|group| group.expect("every group takes part").as_str().to_string()).collect()
}

#[test]
fn the_readme_gives_the_figures_of_the_fidelity_page() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (readme, page) = (read("README.md"), read("docs/generated/fidelity.md"));
    let (all, equal) = (r"checked against (\d+) recordings", r"\. (\d+) recordings are equal");
    let of_page = [all, equal].map(|pattern| numbers(&page, pattern).remove(0));
    let mut of_readme = numbers(&readme, r"In (\d+) of (\d+) recordings it does");
    of_readme.reverse();
    assert_eq!(of_readme, of_page, "recordings, and equal ones");
    assert_eq!(
        numbers(&readme, r"(\d+) rules are done wrongly on purpose, one at a time; recordings notice (\d+)"),
        numbers(&page, r"(\d+) rules are broken, one at a time: (\d+) of these mistakes are noticed"),
        "planted mistakes, and noticed ones"
    );
}

/// The page is made anew where the model changes; the README must follow.
#[test]
fn the_readme_gives_the_figures_of_the_page_of_published_tables() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (readme, page) = (read("README.md"), read("docs/generated/published.md"));
    let cells = |line: &str, between: &str| -> Vec<String> {
        line.split(between).map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
    };
    let quoted: Vec<&str> = readme.lines().filter(|line| line.starts_with(" ") && line.contains(" *  ")).collect();
    assert_eq!(quoted.len(), 3, "rows of the first command");
    for row in quoted {
        let row = cells(row, "  ");
        let begin = format!("| {} \\*, {} |", row[0].trim_end_matches(" *"), row[1]);
        let of_page = page.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("no row '{begin}'"));
        let of_page = cells(of_page, "|");
        let (published, measured) = ([&row[2], &row[3]], [&row[5], &row[6]]);
        assert_eq!((published, measured), ([&of_page[1], &of_page[2]], [&of_page[3], &of_page[4]]), "{begin}");
        assert!(of_page[5].starts_with(row[8].split(':').next().unwrap_or_default()), "{begin}: {}", of_page[5]);
    }
    let score = r"(\d+) of (\d+) rows change the published way";
    assert_eq!(numbers(&readme, score), numbers(&page, score));
    let headline = r"(\d+) of (\d+) headline rows change by the published size";
    assert_eq!(numbers(&readme, headline), numbers(&page, headline));
}
