//! Experiments as one page for a browser: tables, percentile curves, the pace sweep, series over
//! time and the memory map.
//!
//! The page is a single file that loads nothing, so it can be mailed, archived and opened offline.
//! Tables and text are HTML from here; the page's script draws the rest from JSON that can contain
//! neither tags nor comments.

mod left_out;
mod overview;
mod rounds;

use crate::bounds;
use crate::conclusion::{self, Called};
use crate::data::Data;
pub use crate::data::PageExperiment;
use crate::limits::LIMITS;
use crate::number;
use crate::overview::Overview;
use crate::standing::{self, Count, Layout};
use crate::take_away;
use crate::verdict::{self, Standing};
use kontig_results::{ExperimentResult, Row};
use std::fmt::Write;

/// Contents of a page.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Heading and window title.
    pub title: String,
    /// A sentence under the heading; may be empty.
    pub subtitle: String,
    /// The overview of all experiments, if it was asked for.
    pub overview: Option<Overview>,
    /// The experiments, in order.
    pub experiments: Vec<PageExperiment<'a>>,
}

/// Colours of variants in the style sheet, `--v0` and so on; core.js has the same number.
pub(crate) const COLOURS: usize = 12;
/// Variants with one pattern of line; those after them have the next of [`DASHES`].
pub(crate) const PLAIN: usize = 4;
/// Patterns of lines, as `stroke-dasharray` writes them; core.js has the same.
pub(crate) const DASHES: [&str; 3] = ["", "8 4", "2 3"];

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPTS: [&str; 6] = [
    include_str!("../assets/core.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/plots.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/transport.js"),
    include_str!("../assets/page.js"),
];

/// The page as one HTML document.
pub fn page(page: &Page<'_>) -> String {
    let mut body = page.overview.as_ref().map(overview::section).unwrap_or_default();
    for (i, experiment) in page.experiments.iter().enumerate() {
        section(&mut body, i, experiment);
    }
    limits(&mut body);
    let subtitle = paragraphs(&page.subtitle);
    // Results hold only strings, numbers and lists, which always serialise. If that ever changes,
    // the page says "no data".
    let json = serde_json::to_string(&Data::of(&page.experiments)).unwrap_or_else(|_| "null".into());
    let parts = [
        ("title", escape(&page.title)),
        ("subtitle", subtitle),
        ("style", STYLE.to_owned()),
        ("nav", navigation(page)),
        ("body", body),
        ("data", script_safe(&json)),
        ("script", SCRIPTS.join("\n")),
    ];
    fill(TEMPLATE, &parts)
}

/// Replaces every `{{name}}` of the template in one pass, so that inserted text is not searched.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len() + parts.iter().map(|p| p.1.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        out.push_str(parts.iter().find(|part| part.0 == name).map_or("", |part| &part.1));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a script element: without `<` it can contain neither a tag nor a comment.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| format!("<p>{}</p>", escape(part))).collect()
}

/// A variant's name behind its colour. Lines break only after a `+`, which joins switches.
fn variant_head(index: usize, name: &str) -> String {
    let key = variant_key(index);
    let part = |(i, part)| format!("<span class=\"whole\">{}{}</span>", if i == 0 { &key } else { "" }, escape(part));
    name.split_inclusive('+').enumerate().map(part).collect()
}

fn navigation(page: &Page<'_>) -> String {
    if page.experiments.len() < 2 {
        return String::new();
    }
    let links: String = (page.experiments.iter().enumerate())
        .map(|(i, e)| format!("<a href=\"#experiment-{i}\">{}</a>", escape(&standing::title(e.result))))
        .collect();
    format!("<nav aria-label=\"Experiments\">{links}</nav>")
}

fn section(out: &mut String, i: usize, e: &PageExperiment<'_>) {
    let (id, machine) = (escape(&standing::title(e.result)), escape(&e.result.machine));
    let held = e.result.rows.iter().any(|row| !row.published.is_empty());
    let _ = write!(
        out,
        "<section class=\"experiment\" id=\"experiment-{i}\" data-experiment=\"{i}\"><h2>{id} on {machine}</h2>"
    );
    if !e.summary.is_empty() {
        let _ = write!(out, "<div class=\"prose\">{}</div>", paragraphs(&e.summary));
    }
    if held {
        pills(out, e.result);
    }
    conclusion(out, e.result);
    figures(out, e);
    part(out, "sweep");
    if !e.result.rows.is_empty() {
        let of = bounds::columns(e.result);
        let layout = Layout::of(&of);
        tables(out, &of, &layout.single, held);
        rounds::write(out, &of);
        phases(out, &of, &layout);
    }
    if !held {
        remarks(out, e.result);
    }
    ["curves", "pace", "map", "series"].into_iter().for_each(|name| part(out, name));
    if !e.notes.is_empty() {
        let _ = write!(out, "<div class=\"prose notes\"><h3>Notes</h3>{}</div>", paragraphs(&e.notes));
    }
    out.push_str("</section>");
}

/// Room for a part that the page's script draws, if there is data for it.
fn part(out: &mut String, name: &str) {
    let _ = write!(out, "<div class=\"part {name}\" hidden></div>");
}

/// The conclusion, before any table. Its lines that belong to the one above begin with spaces.
fn conclusion(out: &mut String, e: &ExperimentResult) {
    let lines = conclusion::lines(e, Called::ByName);
    if lines.is_empty() {
        return;
    }
    out.push_str("<div class=\"conclusion\">");
    for line in lines {
        let class = if line.starts_with(' ') { " class=\"of\"" } else { "" };
        let _ = write!(out, "<p{class}>{}</p>", escape(line.trim_start()));
    }
    out.push_str("</div>");
}

/// A link to the figures as a file, which the page itself holds, and what the page leaves out.
fn figures(out: &mut String, e: &PageExperiment<'_>) {
    let said = match take_away::file(e.result) {
        Some(file) if file.rows > 0 => {
            let (name, rows) = (escape(&file.name), kontig_text::grouped(file.rows));
            let which = if file.is_whole { "each figure" } else { "each figure that the conclusion is about" };
            format!(
                "<a download=\"{name}\" href=\"{}\">Figures as CSV</a> <small>{rows} rows, one for {which} and \
                 variant</small>",
                file.address
            )
        }
        Some(_) => String::new(),
        None => "<small>The figures are too many for a page: kontig export writes them as CSV.</small>".into(),
    };
    if !said.is_empty() {
        let _ = write!(out, "<p class=\"take-away\">{said}</p>");
    }
    if let Some(left_out) = left_out::said(e) {
        let _ = write!(out, "<p class=\"small\">{}</p>", escape(&left_out));
    }
}

fn pills(out: &mut String, e: &ExperimentResult) {
    let missed = e.rows.iter().filter(|row| verdict::standing(row) == Standing::Missed).count();
    let way = match standing::beyond_chance(e.score.beyond_chance) {
        Some(chance) => format!("rows move the published way, {chance}"),
        None => "rows move the published way".into(),
    };
    let words = |count: Count| match count {
        Count::Direction => way.as_str(),
        Count::ToZero => "rows fall to zero as published",
        Count::FalseAlarms => "false alarms",
        Count::Headline => "headline rows within 2×",
        Count::Ageing => "series age as published",
    };
    out.push_str("<ul class=\"pills\">");
    let still = standing::counts(&e.score.nothing_changes);
    for ((count, n, of), (_, if_still, _)) in standing::counts(&e.score.measured).into_iter().zip(still) {
        let good = if count == Count::FalseAlarms { n == 0 } else { n == of };
        let class = if good { "good" } else { "short" };
        let words = escape(words(count));
        let _ = write!(
            out,
            "<li class=\"{class}\"><b>{n}/{of}</b> {words} <small>({if_still} if nothing changed)</small></li>"
        );
    }
    let (class, words) =
        (if missed == 0 { "good" } else { "short" }, if missed == 1 { "row missed" } else { "rows missed" });
    let _ = write!(out, "<li class=\"{class}\"><b>{missed}</b> {words}</li></ul>");
    if let Some(explained) = standing::counts_explained(&e.score) {
        let _ = write!(out, "<p class=\"small\">{}</p>", escape(&explained));
    }
}

fn limits(out: &mut String) {
    out.push_str("<section class=\"prose limits\"><h2>Limits</h2><ul>");
    for limit in LIMITS {
        out.push_str("<li>");
        // The list uses two Markdown marks, ** and `: every other part is bold, every other one of
        // that is code.
        for (i, part) in limit.split("**").enumerate() {
            let text: String =
                part.split('`').enumerate().map(|(i, text)| in_element(i % 2 == 1, "code", text)).collect();
            out.push_str(&if i % 2 == 1 { format!("<b>{text}</b>") } else { text });
        }
        out.push_str("</li>");
    }
    out.push_str("</ul></section>");
}

fn in_element(inside: bool, name: &str, text: &str) -> String {
    let text = escape(text);
    if inside { format!("<{name}>{text}</{name}>") } else { text }
}

/// The rows with published figures, or the others.
fn tables(out: &mut String, e: &ExperimentResult, rows: &[&Row], held: bool) {
    if let Some(how) = standing::how_merged_with_ranges(e) {
        let _ = write!(out, "<p class=\"hint\">{}</p>", escape(&how));
    }
    let (published, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| !row.published.is_empty());
    if held {
        table(out, e, &published, true);
    }
    if e.rows.iter().any(|row| row.headline) {
        out.push_str("<p class=\"small\">Headline rows, whose size counts, are in bold.</p>");
    }
    apart(out, e);
    if held {
        // Reasons for missed rows belong next to the rows.
        remarks(out, e);
    }
    if held && !others.is_empty() {
        out.push_str("<div class=\"part\"><h3>Not published</h3>");
        table(out, e, &others, false);
        out.push_str("</div>");
    } else if !held {
        table(out, e, &others, false);
    }
    if let Some(mark) = standing::mark_explained(e) {
        let _ = write!(out, "<p class=\"small\">{}</p>", escape(&mark));
    }
}

/// The rows that are scored separately, and why.
fn apart(out: &mut String, e: &ExperimentResult) {
    let lines = standing::apart(e);
    if lines.is_empty() {
        return;
    }
    out.push_str("<ul class=\"remarks\">");
    for line in lines {
        let _ = write!(out, "<li>{}</li>", escape(line.trim()));
    }
    out.push_str("</ul>");
}

fn table(out: &mut String, e: &ExperimentResult, rows: &[&Row], held: bool) {
    let variants = e.variants.len();
    let (change, paired) = (usize::from(variants > 1), standing::has_pairs(e));
    let groups: &[&str] = if held { &["Published", "Measured"] } else { &["Measured"] };
    out.push_str("<div class=\"scroll\"><table><thead><tr><th rowspan=\"2\">Row</th>");
    for group in groups {
        let _ = write!(out, "<th class=\"group\" colspan=\"{}\">{group}</th>", variants + change);
    }
    if paired {
        let _ = write!(out, "<th class=\"group\" colspan=\"{}\">Seed by seed</th>", variants - 1);
    }
    out.push_str(if held { "<th rowspan=\"2\">Verdict</th></tr><tr>" } else { "</tr><tr>" });
    for _ in groups {
        for (i, variant) in e.variants.iter().enumerate() {
            let edge = if i == 0 { " edge" } else { "" };
            let _ = write!(out, "<th class=\"figure{edge}\">{}</th>", variant_head(i, variant));
        }
        if let (true, Some(last)) = (change == 1, e.variants.last()) {
            // With more than two variants, name the one that is compared.
            let of = if variants > 2 { format!("<br><small>{}</small>", escape(last)) } else { String::new() };
            let _ = write!(out, "<th class=\"figure\">change{of}</th>");
        }
    }
    if paired {
        for (i, variant) in e.variants.iter().enumerate().skip(1) {
            let edge = if i == 1 { "edge" } else { "" };
            let _ = write!(out, "<th class=\"{edge}\">{}</th>", variant_head(i, variant));
        }
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        table_row(out, row, variants, held, paired);
    }
    out.push_str("</tbody></table></div>");
}

/// A measured figure, its range below.
fn measured(row: &Row, variant: usize) -> Option<String> {
    let m = row.measured.get(variant)?.as_ref()?;
    let range = standing::range(row, m).map(|range| format!("<small class=\"range\">{}</small>", escape(&range)));
    Some(format!("{}{}", escape(&standing::figure(m)), range.unwrap_or_default()))
}

fn table_row(out: &mut String, row: &Row, variants: usize, held: bool, paired: bool) {
    let verdict = verdict::standing(row);
    let class = match (row.headline, verdict == Standing::Missed) {
        (true, true) => "headline missed",
        (true, false) => "headline",
        (false, true) => "missed",
        (false, false) => "",
    };
    let (name, unit) = (escape(&standing::name(row)), escape(&row.unit));
    let _ = write!(out, "<tr class=\"{class}\"><th scope=\"row\">{name} <span class=\"unit\">{unit}</span></th>");
    let mut cell = |class: &str, text: Option<String>| {
        let _ = write!(out, "<td class=\"figure{class}\">{}</td>", text.as_deref().unwrap_or("–"));
    };
    let edge = |i: usize| if i == 0 { " edge" } else { "" };
    if held {
        for i in 0..variants {
            cell(edge(i), row.published.get(i).map(|&value| number::exact(value)));
        }
        if variants > 1 {
            cell(" change", verdict::published_change(row).map(number::factor));
        }
    }
    for i in 0..variants {
        cell(edge(i), measured(row, i));
    }
    if variants > 1 {
        cell(" change", verdict::measured_change(row).map(number::factor));
    }
    if paired {
        for i in 1..variants {
            seed_by_seed(out, row, i, if i == 1 { "edge" } else { "" });
        }
    }
    if held {
        let class = match verdict {
            Standing::Missed => "missed",
            Standing::Agrees => "agrees",
            Standing::Loose => "loose",
            Standing::None => "none",
        };
        let _ = write!(out, "<td class=\"verdict {class}\"><span>{}</span></td>", escape(&verdict::text(row)));
    }
    out.push_str("</tr>");
}

/// A variant against the baseline, seed by seed; dimmed if the ranges overlap.
fn seed_by_seed(out: &mut String, row: &Row, variant: usize, edge: &str) {
    let apart = row.pairs.get(variant).copied().flatten().is_some_and(|pairs| !pairs.overlap);
    let words = standing::against_baseline(row, variant).unwrap_or_else(|| "–".into());
    let class = if apart { "" } else { " soft" };
    let _ = write!(out, "<td class=\"seeds {edge}{class}\">{}</td>", escape(&words));
}

/// Figures of every phase of a run: a line per variant, a column per phase.
fn phases(out: &mut String, e: &ExperimentResult, layout: &Layout<'_>) {
    if layout.by_phase.is_empty() {
        return;
    }
    let (variants, paired) = (e.variants.len(), standing::has_pairs(e));
    out.push_str(
        "<div class=\"part\"><h3>By phase</h3><p class=\"hint\">A variant may do work before the \
        measurement that others do in it: ",
    );
    out.push_str(
        "read the total beside the measured phase.</p><div class=\"scroll\"><table \
        class=\"phases\"><thead><tr><th>Figure</th><th></th>",
    );
    for (i, phase) in layout.phases.iter().enumerate() {
        let edge = if i == 0 { " edge" } else { "" };
        let _ = write!(out, "<th class=\"figure{edge}\">{}</th>", escape(phase));
    }
    let last = layout.phases.last().map_or(String::new(), |phase| escape(phase));
    if variants > 1 {
        let _ = write!(out, "<th class=\"figure\">change of {last}</th>");
    }
    if paired {
        let _ = write!(out, "<th class=\"edge\">{last}, seed by seed</th>");
    }
    out.push_str("</tr></thead>");
    for rows in &layout.by_phase {
        let Some(any) = rows.iter().flatten().next() else { continue };
        let last = rows.last().copied().flatten();
        out.push_str("<tbody>");
        for (i, variant) in e.variants.iter().enumerate() {
            out.push_str("<tr>");
            if i == 0 {
                let (name, unit) = (escape(&any.name), escape(&any.unit));
                let _ = write!(
                    out,
                    "<th scope=\"rowgroup\" rowspan=\"{variants}\">{name} <span class=\"unit\">{unit}</span></th>"
                );
            }
            let _ = write!(out, "<th scope=\"row\" class=\"variant\">{}</th>", variant_head(i, variant));
            for (at, row) in rows.iter().enumerate() {
                let edge = if at == 0 { " edge" } else { "" };
                let text = row.and_then(|row| measured(row, i));
                let _ = write!(out, "<td class=\"figure{edge}\">{}</td>", text.as_deref().unwrap_or("–"));
            }
            if variants > 1 {
                let change = last.filter(|_| i > 0).and_then(|row| verdict::change_to(row, i)).map(number::factor);
                let _ = write!(out, "<td class=\"figure change\">{}</td>", change.unwrap_or_default());
            }
            match last.filter(|_| paired && i > 0) {
                Some(row) => seed_by_seed(out, row, i, "edge"),
                None if paired => out.push_str("<td class=\"edge\"></td>"),
                None => {}
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody>");
    }
    out.push_str("</table></div>");
    if let Some(nothing) = layout.nothing() {
        let _ = write!(out, "<p class=\"hint\">{}</p>", escape(&nothing));
    }
    out.push_str("</div>");
}

/// A variant's name behind its colour, on one line.
fn variant_line(index: usize, name: &str) -> String {
    format!("{}{}", variant_key(index), escape(name))
}

/// The colour of a variant in front of its name, with gaps where its lines are dashed.
fn variant_key(index: usize) -> String {
    format!("<i class=\"key v{} d{}\"></i>", index % COLOURS, index / PLAIN % DASHES.len())
}

/// Remarks on the runs.
fn remarks(out: &mut String, e: &ExperimentResult) {
    let of_no_step = standing::of_no_step(e);
    let remarks = [&of_no_step, &e.remarks].map(|all| standing::remarks(all)).concat();
    if remarks.is_empty() {
        return;
    }
    out.push_str("<ul class=\"remarks\">");
    for (variants, text) in remarks {
        let names = variants.iter().filter_map(|&i| Some(variant_line(i, e.variants.get(i)?)));
        let names: Vec<String> = names.map(|name| format!("<b>{name}</b>")).collect();
        let of = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
        let _ = write!(out, "<li>{of}{}</li>", escape(text));
    }
    out.push_str("</ul>");
}
