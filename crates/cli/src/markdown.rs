//! `--markdown`: the page of an experiment, from its text and its results.

use kontig_error::{AskedWrongly, Error};
use kontig_lab::experiment::Variant;
use kontig_lab::outcome::Outcome;
use kontig_lab::page::PageText;
use kontig_lab::resolved::Resolved;
use kontig_mm::Profile;
use kontig_report::markdown::{self, MarkdownPage, MarkdownQuestion};

/// Refuses several experiments, and one without questions.
pub fn check(resolved: &[Resolved]) -> Result<(), Error> {
    let Some(first) = resolved.first() else { return Ok(()) };
    if let Some(other) = resolved.iter().find(|r| r.experiment.id != first.experiment.id) {
        let (one, other) = (&first.experiment.id, &other.experiment.id);
        let reason = format!("--markdown writes a page of one experiment, not of '{one}' and '{other}': ask for one");
        return Err(AskedWrongly::Value(reason).into());
    }
    text(first).map(drop)
}

fn text(of: &Resolved) -> Result<&PageText, Error> {
    let id = &of.experiment.id;
    of.experiment.page.as_ref().ok_or_else(|| {
        let reason =
            format!("--markdown: '{id}' has no [page] that says which questions it answers; --html needs none");
        AskedWrongly::Value(reason).into()
    })
}

pub fn page(resolved: &[Resolved], outcomes: &[Outcome]) -> Result<String, Error> {
    let results = outcomes.iter().map(|outcome| &outcome.result).collect();
    let Some(first) = resolved.first() else { return Ok(String::new()) };
    let page = MarkdownPage { results, ..of(resolved, first, text(first)?) };
    if let Some(row) = markdown::unknown_rows(&page).first() {
        let reason = format!("[page] of '{}' asks for a row '{row}', which no run has", first.experiment.id);
        return Err(AskedWrongly::Value(reason).into());
    }
    Ok(markdown::page(&page))
}

/// A page without figures.
fn of<'a>(resolved: &[Resolved], first: &'a Resolved, text: &'a PageText) -> MarkdownPage<'a> {
    let e = &first.experiment;
    let question =
        |q: &'a kontig_lab::page::Question| MarkdownQuestion { ask: &q.ask, rows: &q.rows, reading: &q.reading };
    let everywhere = common(resolved.iter().flat_map(|r| &r.experiment.variant));
    let machine = |r: &Resolved| {
        let name = if r.case.is_empty() { r.machine.name.clone() } else { format!("{}, {}", r.case, r.machine.name) };
        let mut of_case = common(r.experiment.variant.iter());
        of_case.retain(|setting| !everywhere.contains(setting));
        (name, r.machine.summary.clone() + &said(&of_case))
    };
    let in_all_cases = |i: usize| common(resolved.iter().filter_map(|r| r.experiment.variant.get(i)));
    let variants = e.variant.iter().zip(&first.profiles).enumerate();
    MarkdownPage {
        title: &text.title,
        about: &text.about,
        command: format!("kontig reproduce {} --markdown docs/generated/{}.md", e.id, e.id),
        assumptions: &e.assumptions,
        machines: resolved.iter().map(machine).collect(),
        variants: variants
            .map(|(i, (v, profile))| (v.name.clone(), described(v, profile) + &said(&in_all_cases(i))))
            .collect(),
        questions: text.question.iter().map(question).collect(),
        depends_on: &text.depends_on,
        not_modelled: &text.not_modelled,
        results: Vec::new(),
    }
}

/// The settings that all these variants share.
fn common<'a>(mut variants: impl Iterator<Item = &'a Variant>) -> Vec<(String, String)> {
    let mut settings = variants.next().map(Variant::sysctl_texts).unwrap_or_default();
    for variant in variants {
        let its_own = variant.sysctl_texts();
        settings.retain(|setting| its_own.contains(setting));
    }
    settings
}

fn said(settings: &[(String, String)]) -> String {
    settings.iter().map(|(name, value)| format!("; {name} = {value}")).collect()
}

/// A variant's profile and the patches on top.
fn described(v: &Variant, profile: &Profile) -> String {
    let switches = kontig_profiles::switches();
    let mut said = format!("profile {} ({})", v.profile, profile.summary);
    for name in &v.switches {
        let summary = switches.get(name).map_or("", |switch| switch.summary.as_str());
        said += &format!("; switch {name} ({summary})");
    }
    if !profile.recorded {
        said += "; followed from source, not recorded";
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_lab::catalog;

    /// The run behind this page takes minutes, so only its text is compared with the experiment's,
    /// and its tables are counted.
    #[test]
    fn the_page_in_docs_says_what_its_experiment_says() {
        let (experiment, source) = catalog::experiment("pageblock-goal").unwrap();
        let resolved = Resolved::all(&experiment, Some(&source)).unwrap();
        let written = page(&resolved, &[]).map(|_| ()).err();
        assert!(written.is_some(), "without runs there are no rows");
        let first = &resolved[0];
        let text = text(first).unwrap();
        let expected = markdown::page(&of(&resolved, first, text));
        let docs = include_str!("../../../docs/generated/pageblock-goal.md");
        for line in expected.lines().filter(|line| !line.is_empty()) {
            assert!(docs.lines().any(|l| l == line), "docs/generated/pageblock-goal.md lacks: {line}\nregenerate it");
        }
        let tables = docs.lines().filter(|line| line.starts_with("| --- |")).count();
        assert_eq!(tables, text.question.len() * resolved.len());
    }
}
