//! The overview of all experiments, at the top of a page.

use super::escape;
use crate::overview::{EXPLAINED, HEAD, MISSED_HEAD, Overview};
use std::fmt::Write;

pub(super) fn section(overview: &Overview) -> String {
    let mut out = String::from("<section class=\"overview\"><h2>All experiments</h2>");
    for said in [&overview.unfinished, &overview.conclusion].into_iter().filter(|said| !said.is_empty()) {
        let _ = write!(out, "<p class=\"take-away\">{}</p>", escape(said));
    }
    table(&mut out, &HEAD, &overview.rows);
    let _ = write!(out, "<p class=\"small\">{}</p>", escape(EXPLAINED));
    if let Some(missed) = &overview.missed {
        let _ = write!(out, "<p>{}</p>", escape(&missed.head));
        table(&mut out, &MISSED_HEAD, &missed.rows);
        for reason in &missed.reasons {
            let _ = write!(out, "<p class=\"small\">{}</p>", escape(reason));
        }
    }
    out + "</section>"
}

/// A table whose first column is names.
fn table<const N: usize>(out: &mut String, head: &[&str; N], rows: &[[String; N]]) {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    head.iter().for_each(|cell| _ = write!(out, "<th>{}</th>", escape(cell)));
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        row.iter().for_each(|cell| _ = write!(out, "<td>{}</td>", escape(&cell.replace("  ", "\u{2003}"))));
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}
