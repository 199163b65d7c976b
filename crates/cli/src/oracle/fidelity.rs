//! `kontig oracle fidelity`: replays all recordings and reports how far to trust each mechanism.

use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_oracle::fidelity::page::{Carried, Outcome, Replayed, Row, Unnoticed};
use kontig_oracle::fidelity::{Page, Standing, markdown};
use kontig_terminal::Ending;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub const HELP: &str = "Examples:\n  \
    kontig oracle fidelity                                    the page in Markdown\n  \
    kontig oracle fidelity --out docs/generated/fidelity.md   regenerate the page in docs\n  \
    kontig oracle fidelity recordings/6.1-mixed               with a recording of your own in its table\n\n\
    Run it at the top of the source tree: it replays oracle/golden, and reads oracle/mechanisms.toml, mutants.toml \
    and evidence.toml.\n\n\
    Exit codes: 0 done; 3 done, but a recording differs; 2 not the top of the source tree, or a malformed file in it; \
    1 failed otherwise.";

/// Options of `kontig oracle fidelity`.
#[derive(Args)]
pub struct FidelityArgs {
    /// Further recording folders to include
    #[arg(value_name = "DIR")]
    recordings: Vec<PathBuf>,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document (schema kontig.fidelity/1) instead of Markdown
    #[arg(long)]
    json: bool,
}

pub fn fidelity(args: &FidelityArgs) -> Result<Ending, Error> {
    super::source_tree::at_the_top("oracle/mechanisms.toml")?;
    let page = Page::of(Path::new(""), &args.recordings).map_err(|e| AskedWrongly::Value(e.to_string()))?;
    let text = if args.json { format!("{:#}\n", as_json(&page)) } else { markdown::page(&page) };
    match &args.out {
        None => kontig_terminal::print(&text)?,
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failed::Write { path: path.display().to_string(), reason: e.to_string() })?,
    }
    Ok(if page.differs() { Ending::Different } else { Ending::Done })
}

fn as_json(page: &Page) -> Value {
    let kernels: Vec<Value> =
        page.kernels.iter().map(|k| json!({ "series": k.series, "version": k.version })).collect();
    let mechanism = |row: &Row| {
        let against = page.kernels.iter().zip(&row.standings).map(|(k, s)| (k.series.clone(), standing_as_json(s)));
        json!({
            "name": row.mechanism.name.as_ref(),
            "engine": row.mechanism.engine,
            "rules": row.mechanism.rules,
            "against": against.collect::<serde_json::Map<String, Value>>(),
        })
    };
    let limits: Vec<Value> = page.limits.iter().map(|l| json!({ "what": l.what, "why": l.why })).collect();
    let unnoticed = |u: &Unnoticed| json!({ "name": u.mistake, "mechanism": u.mechanism, "why": u.why });
    json!({
        "schema": "kontig.fidelity/1",
        "kernels": kernels,
        "mechanisms": page.rows.iter().map(mechanism).collect::<Vec<_>>(),
        "recordings": page.recordings.iter().map(recording_as_json).collect::<Vec<_>>(),
        "carried": page.carried.as_ref().map(carried_as_json),
        "differing": page.differing.iter().map(|(r, why)| differing_as_json(r, why.as_deref())).collect::<Vec<_>>(),
        "limits": limits,
        "mistakes": page.mistakes,
        "unnoticed": page.unnoticed.iter().map(unnoticed).collect::<Vec<_>>(),
    })
}

fn standing_as_json(standing: &Standing) -> Value {
    match standing {
        Standing::Exact { recordings, mistakes } => {
            json!({ "standing": "exact", "recordings": recordings, "mistakes": mistakes })
        }
        Standing::Equal { recordings } => json!({ "standing": "equal", "recordings": recordings }),
        Standing::Close { recordings, mistakes } => {
            json!({ "standing": "close", "recordings": recordings, "mistakes": mistakes })
        }
        Standing::Differs { recording } => json!({ "standing": "differs", "recording": recording }),
        Standing::Unverified => json!({ "standing": "not-verified" }),
        Standing::Absent => json!({ "standing": "absent" }),
    }
}

/// How far the previous profile carries to the newest kernel.
fn carried_as_json(carried: &Carried) -> Value {
    let different = carried.different.iter().map(|(name, at)| json!({ "name": name, "at": at }));
    json!({
        "kernel": carried.kernel.version,
        "by": carried.by.version,
        "equal": carried.equal,
        "different": different.collect::<Vec<_>>(),
    })
}

/// A recording that is not reproduced, with the reason if established.
fn differing_as_json(r: &Replayed, why: Option<&str>) -> Value {
    let mut value = recording_as_json(r);
    value["why"] = why.into();
    value
}

fn recording_as_json(r: &Replayed) -> Value {
    let result = match &r.outcome {
        Outcome::Reproduced(c) => match &c.close {
            Some(close) => json!({ "verdict": "close", "closeness": super::verify::closeness_as_json(close) }),
            None => json!({ "verdict": "equal", "compared": super::verify::compared_as_json(c) }),
        },
        Outcome::Different(d) => json!({ "verdict": "different", "at": d.at.to_string() }),
        Outcome::NotReplayed(why) => json!({ "verdict": "not-replayed", "reason": why }),
    };
    json!({ "name": r.name, "series": r.series, "what": r.what, "result": result })
}
