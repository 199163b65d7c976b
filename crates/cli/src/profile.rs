//! `kontig profile`: the rules of a kernel generation, and the differences between two.
//!
//! A rule has a line with its value, its kernels and the section that describes it, and a
//! description below, in the engine's words ([`kontig_mm::rules`]). Its kernels are the
//! profiles that have the value.

use clap::{Args, Subcommand};
use kontig_error::Error;
use kontig_mm::Profile;
use kontig_mm::rules::MECHANISMS;
use kontig_mm::rules::rule::{Rule, Setting};
use kontig_profiles::History;
use kontig_terminal::{width, wrap};

#[derive(Subcommand)]
pub(crate) enum ProfileCommand {
    /// Show all rules of a kernel generation, by mechanism
    #[command(after_help = "Examples:\n  kontig profile show 6.1\n  kontig profile show ./mine.toml --json\n\n\
        'kontig list' shows the profiles. A profile file names its base (base = \"6.1\") and, in a table for each \
        mechanism, the rules that differ. The kernels beside a value are the profiles that have it.")]
    Show(ShowArgs),
    /// Show the rules in which two kernel generations differ
    #[command(after_help = "Examples:\n  kontig profile diff 6.1 7.2\n  kontig profile diff 6.1 ./mine.toml --short")]
    Diff(DiffArgs),
}

/// Options of `kontig profile show`.
#[derive(Args)]
pub struct ShowArgs {
    /// A profile, by name or file
    #[arg(value_name = "NAME|FILE")]
    profile: String,
    /// Print one line per rule, without its description
    #[arg(long, conflicts_with = "json")]
    short: bool,
    /// Print JSON (schema kontig.profile/1)
    #[arg(long)]
    json: bool,
}

impl ShowArgs {
    /// A line for each rule of this profile.
    pub fn brief(profile: &str) -> ShowArgs {
        ShowArgs { profile: profile.into(), short: true, json: false }
    }
}

/// Options of `kontig profile diff`.
#[derive(Args)]
pub struct DiffArgs {
    /// A profile, by name or file
    #[arg(value_name = "FROM")]
    from: String,
    /// The profile to compare it with
    #[arg(value_name = "TO")]
    to: String,
    /// Print one line per rule, without its description
    #[arg(long, conflicts_with = "json")]
    short: bool,
    /// Print JSON (schema kontig.profile-diff/1)
    #[arg(long)]
    json: bool,
}

pub fn profile(command: &ProfileCommand) -> Result<(), Error> {
    match command {
        ProfileCommand::Show(a) => show(&kontig_profiles::open(&a.profile)?, a),
        ProfileCommand::Diff(a) => diff(&kontig_profiles::open(&a.from)?, &kontig_profiles::open(&a.to)?, a),
    }
}

fn show(p: &Profile, a: &ShowArgs) -> Result<(), Error> {
    let history = History::read();
    let rules: Vec<(&Rule, Setting)> = p.settings().collect();
    if a.json {
        let mechanisms: Vec<_> = MECHANISMS
            .iter()
            .map(|m| {
                let own = rules.iter().filter(|(rule, _)| rule.mechanism == m.name);
                let rules: Vec<_> = own.map(|(rule, s)| described(&history, rule, &[("value", *s)])).collect();
                serde_json::json!({ "name": m.name, "about": m.about, "rules": rules })
            })
            .collect();
        let doc = serde_json::json!({
            "schema": "kontig.profile/1",
            "name": p.name,
            "summary": p.summary,
            "recorded": p.recorded,
            "reclaim_recorded": p.reclaim_recorded,
            "version": p.version,
            "lru_gen_not_modelled": p.lru_gen.enabled && !kontig_profiles::has_lru_gen(p),
            "mechanisms": mechanisms,
        });
        return kontig_terminal::print(&format!("{doc:#}\n"));
    }
    let entries: Vec<Entry> = rules
        .iter()
        .map(|&(rule, s)| {
            let text = match s {
                Setting::Variant(v) => vec![v.what.to_string()],
                Setting::Switch(_) | Setting::Number(_) => vec![rule.what.to_string()],
            };
            Entry { rule, value: s.shown(), kernels: history.kernels(rule, s), text }
        })
        .collect();
    let recorded = match (p.recorded, p.reclaim_recorded) {
        (true, true) => "A kernel of this generation was recorded, and the engine reproduces it.",
        (true, false) => {
            "A kernel of this generation was recorded without reclaim, and the engine reproduces it; reclaim and LRU \
             lists follow the sources."
        }
        (false, _) => "No kernel of this generation was recorded: its rules follow the sources.",
    };
    let recorded = match &p.version {
        Some(version) => format!("{recorded} Its rules are those of {version}."),
        None => recorded.to_string(),
    };
    let recorded = wrap("", &recorded, 0, width());
    let lru_gen = kontig_profiles::lru_gen_of_distributions(p, 7);
    let lru_gen = lru_gen.map_or(String::new(), |text| wrap("", &format!("{text}."), 0, width()));
    let title = wrap("", &format!("{}: {}", p.name, p.summary), 4, width());
    kontig_terminal::print(&format!("{title}{recorded}{lru_gen}{}", listed(&entries, a.short)))
}

fn diff(from: &Profile, to: &Profile, a: &DiffArgs) -> Result<(), Error> {
    let history = History::read();
    let all = from.settings().count();
    let pairs = from.settings().zip(to.settings());
    let differing: Vec<(&Rule, Setting, Setting)> =
        pairs.map(|((rule, a), (_, b))| (rule, a, b)).filter(|(_, a, b)| a != b).collect();
    if a.json {
        let rules: Vec<_> =
            differing.iter().map(|(r, a, b)| described(&history, r, &[("from", *a), ("to", *b)])).collect();
        let doc = serde_json::json!({
            "schema": "kontig.profile-diff/1",
            "from": from.name,
            "to": to.name,
            "rules": rules,
        });
        return kontig_terminal::print(&format!("{doc:#}\n"));
    }
    let entries: Vec<Entry> = differing
        .iter()
        .map(|&(rule, a, b)| {
            let text = match (a, b) {
                (Setting::Variant(before), Setting::Variant(after)) => {
                    vec![format!("from: {}", before.what), format!("to: {}", after.what)]
                }
                _ => vec![rule.what.to_string()],
            };
            Entry { rule, value: format!("{} -> {}", a.shown(), b.shown()), kernels: history.kernels(rule, b), text }
        })
        .collect();
    let count = match differing.len() {
        0 => "no rule differs".into(),
        1 => format!("1 of {all} rules differs"),
        n => format!("{n} of {all} rules differ"),
    };
    kontig_terminal::print(&format!("{} -> {}: {count}\n{}", from.name, to.name, listed(&entries, a.short)))
}

/// A rule in JSON, with its settings under these names.
fn described(history: &History, rule: &Rule, settings: &[(&str, Setting)]) -> serde_json::Value {
    let mut doc = serde_json::json!({
        "mechanism": rule.mechanism,
        "name": rule.name,
        "what": rule.what,
        "section": rule.section,
    });
    for (name, setting) in settings {
        doc[*name] = match setting {
            Setting::Switch(on) => (*on).into(),
            Setting::Number(n) => (*n).into(),
            Setting::Variant(v) => v.name().into(),
        };
        if let Setting::Variant(v) = setting {
            doc[format!("{name}_means")] = v.what.into();
        }
        doc[format!("{name}_kernels")] = history.kernels(rule, *setting).into();
    }
    doc
}

struct Entry<'a> {
    rule: &'a Rule,
    value: String,
    kernels: String,
    text: Vec<String>,
}

/// The rules by mechanism, in columns; `short` omits the descriptions.
fn listed(entries: &[Entry], short: bool) -> String {
    let mut out = String::new();
    for mechanism in MECHANISMS {
        let own: Vec<&Entry> = entries.iter().filter(|e| e.rule.mechanism == mechanism.name).collect();
        let widest = |of: fn(&Entry) -> usize| own.iter().map(|e| of(e)).max().unwrap_or(0);
        let name = widest(|e| e.rule.name.len());
        let (value, kernels) = (widest(|e| e.value.len()), widest(|e| e.kernels.chars().count()));
        if !own.is_empty() {
            out.push('\n');
            out += &wrap("", &format!("[{}] {}", mechanism.name, mechanism.about), 4, width());
        }
        // Do not align columns that are too wide for the terminal.
        let section = widest(|e| e.rule.section.chars().count());
        let wide = 2 + name + 2 + value + 2 + kernels + 3 + section > width();
        let (name, value, kernels) = if wide { (0, 0, 0) } else { (name, value, kernels) };
        for e in own {
            let (rule, section) = (e.rule.name, e.rule.section);
            let line = format!("  {rule:name$}  {:value$}  {:kernels$}  §{section}\n", e.value, e.kernels);
            out += &match line.trim_end().chars().count() <= width() {
                true => line,
                false => format!("  {rule}  {}\n      {}  §{section}\n", e.value, e.kernels),
            };
            for text in e.text.iter().filter(|_| !short) {
                out += &wrap("      ", text, 6, width());
            }
        }
    }
    if !out.is_empty() {
        out += &wrap("\n", "§: the section of docs/kernel/kernel-behaviour that describes the rule", 0, width());
    }
    out
}
