//! Text that people read: lines fit, docs say more than the name, and words that make sentences
//! read as if translated stay out. TigerBeetle's `tidy.zig` is the model.

use kontig_tidy::{files, root};
use regex::Regex;
use std::fs;

/// Columns of a comment, its indent included.
const COMMENT: usize = 100;
/// Columns of code and of Markdown; rustfmt leaves long strings alone.
const LINE: usize = 120;
/// A doc comment of this many words or fewer repeats a name.
const EMPTY: usize = 3;

/// Words and turns of phrase to avoid, and the remedy.
const BANNED: [(&str, &str); 8] = [
    (r"(?i)\bso many\b", "give the number, or its name"),
    (r"(?i)\bforet(old|ell)\w*", "predicted"),
    (r"(?i)\bdeeds?\b", "action, step, change"),
    (r"(?i)\bwho(ever)? ask(s|ed)\b", "the caller"),
    (r"(?i)\b(is|are|was|were) to be\b", "must, will, should"),
    (r"(?i)\bhas (\w+ ){1,8}be\b", "a verb: makes, sets, marks"),
    (r"(?i)\bcomes? to be\b", "becomes"),
    (r"(?i)(\b|_)(comes?|coming)[ _]along(\b|_)", "built in"),
];

/// A place that breaks a rule: line number, and what to do about it.
type Fault = (usize, String);

struct Words {
    banned: Vec<(Regex, &'static str)>,
    begins: Regex,
    question: Regex,
    public_type: Regex,
    placeholder: Regex,
}

impl Words {
    fn new() -> Words {
        let regex = |pattern| Regex::new(pattern).expect("a valid pattern");
        Words {
            banned: BANNED.iter().map(|(pattern, remedy)| (regex(pattern), *remedy)).collect(),
            begins: regex(r"^(What|Who|Which) [^?]*(\.|:|$)"),
            question: regex(r"^\s*fn (what|who)_\w+"),
            placeholder: regex(r"^\s*[A-Z][A-Z_]+\s*$"),
            public_type: regex(r"^\s*pub (unsafe )?(struct|enum|trait|union|type) (\w+)"),
        }
    }

    fn banned(&self, number: usize, text: &str, faults: &mut Vec<Fault>) {
        for (word, remedy) in &self.banned {
            if let Some(found) = word.find(text) {
                faults.push((number, format!("'{}': say {remedy}", found.as_str())));
            }
        }
    }

    fn rust(&self, text: &str, is_test: bool) -> Vec<Fault> {
        let mut faults = Vec::new();
        // The doc comment above the line, and the number of its first line.
        let (mut doc, mut from) = (Vec::new(), 0);
        let mut before = "";
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
            let words = line.trim_start();
            let comment = words.strip_prefix("//");
            let (kind, limit) = if comment.is_some() { ("comment", COMMENT) } else { ("line", LINE) };
            let columns = line.chars().count();
            // Tests quote what they expect as it is.
            if columns > limit && (comment.is_some() || !is_test) {
                faults.push((number, format!("a {kind} of {columns} columns, not {limit}")));
            }
            if before == "#[test]" && self.question.is_match(line) {
                faults.push((number, "a test is named after what holds: begin with the subject".into()));
            }
            before = words;
            if comment.is_some() || words.contains('"') {
                self.banned(number, words, &mut faults);
            }
            let of_doc =
                comment.and_then(|rest| rest.split_at_checked(1)).filter(|(kind, _)| ["/", "!"].contains(kind));
            if let Some((kind, line)) = of_doc {
                if doc.last().is_some_and(|(last, _)| *last != kind) {
                    self.doc(from, &doc, &mut faults);
                    doc.clear();
                }
                if doc.is_empty() {
                    from = number;
                }
                doc.push((kind, line.trim()));
                continue;
            }
            let is_of_file = doc.last().is_some_and(|(kind, _)| *kind == "!");
            if !doc.is_empty() && !words.starts_with("#[") {
                self.doc(from, &doc, &mut faults);
            }
            if let Some(name) = self.public_type.captures(line).filter(|_| doc.is_empty() || is_of_file) {
                faults.push((number, format!("{} has no doc comment", &name[3])));
            }
            if !words.starts_with("#[") && !words.starts_with(')') {
                doc.clear();
            }
        }
        if !text.trim_start().starts_with("//!") {
            faults.push((1, "the file does not open with what it is for (//!)".into()));
        }
        faults
    }

    fn doc(&self, number: usize, lines: &[(&str, &str)], faults: &mut Vec<Fault>) {
        let doc = &lines.iter().map(|(_, line)| *line).collect::<Vec<_>>().join(" ");
        let words = doc.split_whitespace().count();
        if words <= EMPTY {
            faults.push((number, format!("a doc comment of {words} words: '{doc}'")));
        }
        if self.begins.is_match(doc) {
            faults.push((number, format!("a doc comment that begins as a question: '{}'", first(doc))));
        }
    }

    fn markdown(&self, text: &str) -> Vec<Fault> {
        let (mut faults, mut code) = (Vec::new(), false);
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
            if line.starts_with("```") {
                code = !code;
            }
            if code || line.trim_start().starts_with('|') {
                continue;
            }
            self.banned(number, line, &mut faults);
            if self.placeholder.is_match(line) {
                faults.push((number, format!("'{line}' stands for what is still to be written")));
            }
            let columns = line.chars().count();
            // A link, a picture or a piece of code cannot be broken.
            let breaks = line.char_indices().nth(LINE).is_some_and(|(at, _)| line[..at].trim().contains(' '));
            if columns > LINE && breaks && !line.trim_start().starts_with(['!', '`']) {
                faults.push((number, format!("a line of {columns} columns, not {LINE}")));
            }
        }
        faults
    }

    /// TOML, C and scripts: of their code only what it says, not how wide it is.
    fn other(&self, text: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
            self.banned(number, line, &mut faults);
            let columns = line.chars().count();
            if columns > LINE && line.trim_start().starts_with(['#', '/', '*']) {
                faults.push((number, format!("a comment of {columns} columns, not {LINE}")));
            }
        }
        faults
    }
}

fn first(doc: &str) -> &str {
    doc.split_inclusive('.').next().unwrap_or(doc)
}

#[test]
fn text_is_tidy() {
    let words = Words::new();
    let mut faults = Vec::new();
    // This file quotes what it refuses.
    let lines = Words { banned: Vec::new(), ..Words::new() };
    for path in files(root(), &["rs", "md", "toml", "c", "h", "sh", ""]) {
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if path.extension().is_none() && !bytes.starts_with(b"#!") {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.strip_prefix(root()).expect("it is below").display().to_string();
        let found = match path.extension().and_then(|end| end.to_str()) {
            Some("rs") if path.ends_with("suite/words.rs") => lines.rust(&text, true),
            Some("rs") => words.rust(&text, name.contains("/tests")),
            Some("md") => words.markdown(&text),
            _ => words.other(&text),
        };
        faults.extend(found.into_iter().map(|(number, what)| format!("{name}:{number}: {what}")));
    }
    assert!(faults.is_empty(), "{} places:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn untidy_text_is_seen() {
    let words = Words::new();
    let long = format!("//! A file.\n    // {}\n", "word ".repeat(20));
    for (text, faults) in [
        ("//! Frees pages of a zone.\npub(crate) struct Zone;\n", 0),
        ("//! Frees pages of a zone.\n/// Free pages, in order.\n#[derive(Debug)]\npub struct Zone;\n", 0),
        ("//! Frees pages of a zone.\npub struct Zone;\n", 1),
        ("//! Frees pages of a zone.\nstruct Zone {\n    /// The zone.\n    id: u32,\n}\n", 1),
        ("//! Frees pages of a zone.\n/// What a zone has of pages.\nfn f() {}\n", 1),
        ("//! Frees pages of a zone.\n/// Which is the next zone to scan?\nfn f() {}\n", 0),
        ("//! Frees pages of a zone.\n#[test]\nfn what_is_free_is_found() {}\n", 1),
        ("//! Frees pages of a zone.\nfn what_if() {}\n", 0),
        ("//! Frees so many pages.\n", 1),
        ("//! Reads the files that come along.\n", 1),
        ("//! Frees pages of a zone.\nconst TEXT: &str = \"as foretold\";\n", 1),
        ("const TEXT: &str = \"x\";\n", 1),
        (&*long, 2),
    ] {
        assert_eq!(words.rust(text, false).len(), faults, "{text}: {:?}", words.rust(text, false));
    }
    let wide = format!("{}\n| {} |\n```\n{}\n```\n", "word ".repeat(25), "cell ".repeat(30), "code ".repeat(30));
    assert_eq!(words.markdown(&wide).len(), 1);
    assert_eq!(words.markdown("EXAMPLE\n\nUses PSI.\n```\nTEXT\n```\n").len(), 1);
    assert_eq!(words.other(&format!("# {}\nkey = \"{}\"\n", "word ".repeat(25), "text ".repeat(30))).len(), 1);
    assert_eq!(words.other(&format!("/* {}*/\n\tfrees();\n\t/* so many pages */\n", "word ".repeat(25))).len(), 2);
}
