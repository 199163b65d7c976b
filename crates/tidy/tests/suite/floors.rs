//! No crate's modules use each other in a circle, and no files, but for those in [`TIED`].
//!
//! Where [`FLOORS`] gives an order, a module may use those on the floors below its own, and no
//! method that only a floor above gives a type. Elsewhere the order is any that there is. What is
//! still tied in a circle is listed in [`TIED`], so that it can only become less. A module or file
//! that only hands on what another has does not use it; whoever takes it from there uses the other.
//!
//! Methods are known by their names, not by the type they are called on. A call of a floor above is
//! missed if the caller's floor or one below has any method of that name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floors of a crate, the ground first.
const FLOORS: [(&str, &[&[&str]]); 3] = [
    (
        "sim",
        &[
            &["base"],
            &["sched"],
            &["state"],
            &["device"],
            &["owner"],
            &["kernel"],
            &["paging"],
            &["syscall", "thread"],
            &["task"],
            &["machine"],
        ],
    ),
    (
        "lab",
        &[
            &["built_in", "event_log", "fragmenting", "gate", "groups", "hash", "observe", "page", "unit"],
            &["ftrace", "host_snapshot", "names", "recorded"],
            &["beginning", "document", "parameters", "profiles", "vmstat"],
            &["formula", "guest", "mmtests", "pressure", "source"],
            &["history"],
            &["figures", "sampler", "target"],
            &["missed", "quantity", "round"],
            &["experiment", "repetitions"],
            &["ageing", "remarks", "sysctls"],
            &["catalog", "plan"],
            &["elsewhere", "run", "sweep", "swept", "what_if"],
            &["compare", "queue", "resolved"],
            &["identity", "outcome"],
            &["session"],
            &["cell", "expected", "simulation", "store"],
            &["beside", "difference", "drawn"],
        ],
    ),
    (
        "cli",
        &[
            &["figures", "markdown", "shard", "values"],
            &["bench", "list", "profile", "progress", "run_args", "workload"],
            &["compare", "export", "oracle", "reproduce", "show"],
            &["completions", "laboratory", "trace"],
            &["args"],
        ],
    ),
];

/// Methods that the standard library's types have, too: a call of one says nothing.
const COMMON: [&str; 1] = ["parse"];

/// Modules that use each other, and files that do, by their places.
const TIED: [(&str, &[&str]); 10] = [
    ("cli", &["oracle/guest", "oracle/guest/change", "oracle/guest/page"]),
    ("host", &["status", "status/process"]),
    ("lab", &["mmtests", "mmtests/flat", "mmtests/logs", "mmtests/monitors"]),
    ("live", &["explain", "explain/rule", "host", "host/pools", "host/thp", "process", "process/reason"]),
    (
        "mm",
        &[
            "kswapd",
            "kswapd/by_zone",
            "pcp",
            "pcp/auto_tuned",
            "state/pageblock",
            "state/pageblock/walk",
            "sysctl",
            "sysctl/dirty",
            "sysctl/lru_gen",
            "sysctl/node_reclaim",
            "sysctl/thp",
        ],
    ),
    (
        "oracle",
        &[
            "recording",
            "recording/about",
            "replay",
            "replay/events",
            "replay/faults",
            "replay/operations",
            "replay/outcome",
            "replay/reclaim",
            "replay/reclaim/state",
            "replay/sweep",
            "trace",
            "trace/pressure",
            "trace/pressure/blocks",
            "trace/pressure/corners",
            "trace/pressure/cpus",
            "trace/pressure/files",
            "trace/pressure/nodes",
            "trace/pressure/process",
            "trace/random",
            "trace/script",
            "trace/targeted",
        ],
    ),
    ("program", &["batch", "op", "outcome", "program"]),
    ("report", &["html", "html/overview", "html/rounds"]),
    (
        "sim",
        &[
            "state/file",
            "state/file/dirty",
            "state/file/filesystem",
            "state/file/inode",
            "state/file/inode_table",
            "state/file/slab",
            "state/file/slab/arrays",
            "state/file/slab/slub",
            "state/file/tree",
            "state/file/xfs",
            "state/file/xfs/buffers",
            "state/file/xfs/log",
        ],
    ),
    ("workload", &["kbuild/measured", "kbuild/unit"]),
];

/// The crate's root, where it has something of its own.
const ROOT: &str = "(root)";

/// A module at the top of a crate, with all below it.
#[derive(Default)]
struct Module {
    /// Each file's code, with its place as a path of modules.
    files: Vec<(Vec<String>, String)>,
}

/// Code without comments, and without the items that only tests have.
fn code(text: &str) -> String {
    let mut all = String::new();
    // The indent of the item that is left out, once a line says that the next one is for tests.
    let mut left_out = None;
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        if left_out.is_none() && words == "#[cfg(test)]" {
            left_out = Some(indent);
        } else if left_out.is_none() {
            all += line;
            all.push('\n');
        } else if left_out == Some(indent) && words.ends_with([';', ',', '}']) {
            left_out = None;
        }
    }
    all
}

/// The modules of a crate's sources, the root among them. Files of tests are left out.
fn modules(src: &Path) -> BTreeMap<String, Module> {
    let mut modules = BTreeMap::<String, Module>::new();
    for path in kontig_tidy::files(src, &["rs"]) {
        let below = path.strip_prefix(src).expect("it is below").with_extension("");
        let mut place: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if place.last().is_some_and(|name| name == "tests") {
            continue;
        }
        // The file is the folder's own.
        if place.last().is_some_and(|name| ["mod", "lib", "main"].contains(&&**name)) {
            place.pop();
        }
        let text = code(&fs::read_to_string(&path).expect("it was there"));
        let name = place.first().map_or(ROOT, String::as_str).to_string();
        modules.entry(name).or_default().files.push((place, text));
    }
    modules
}

/// The parts of a list in braces, or the whole if it is none.
fn parts(rest: &str) -> Vec<&str> {
    let Some(list) = rest.strip_prefix('{') else { return vec![rest] };
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(list[from..at].trim());
                from = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts
}

fn first_word(path: &str) -> &str {
    path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The words that follow the crate's root in a file: of `crate::` and of as many `super::` as lead
/// there.
fn words(place: &[String], text: &str) -> BTreeSet<String> {
    let up = "super::".repeat(place.len());
    let from_root = |start: &str| {
        let pieces = text.split(start).collect::<Vec<_>>();
        let whole =
            pieces.windows(2).filter(|two| !two[0].ends_with(|c: char| c.is_alphanumeric() || c == ':' || c == '_'));
        whole.flat_map(|two| parts(two[1])).map(|path| first_word(path).to_string()).collect::<Vec<_>>()
    };
    let mut words = from_root("crate::");
    if !place.is_empty() {
        words.extend(from_root(&up).into_iter().filter(|word| word != "super"));
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

/// The names that a text makes.
fn made(text: &str) -> BTreeSet<String> {
    let kinds = ["struct ", "enum ", "trait ", "type ", "const ", "static ", "union ", "fn ", "macro_rules! "];
    let of_line = |line: &str| {
        let line =
            ["pub(crate) ", "pub(super) ", "pub "].iter().fold(line, |line, start| line.trim_start_matches(start));
        let line = line.trim_start_matches("const fn ").trim_start_matches("unsafe ");
        let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind));
        rest.map(|rest| first_word(rest).to_string())
    };
    text.lines().filter_map(of_line).collect()
}

/// The modules that each module uses.
fn uses(modules: &BTreeMap<String, Module>) -> BTreeMap<String, BTreeSet<String>> {
    let root: String =
        modules.get(ROOT).map_or(String::new(), |root| root.files.iter().map(|(_, text)| &**text).collect());
    // What the root only hands on stands where it comes from.
    let mut handed = BTreeMap::<String, String>::new();
    let (mut own, mut left) = (String::new(), root.as_str());
    while let Some(at) = ["pub use ", "pub(crate) use "].iter().filter_map(|with| left.find(with)).min() {
        own += &left[..at];
        let Some((statement, rest)) = left[at..].split_once(';') else { break };
        let path = statement
            .split_once("use ")
            .expect("it was found")
            .1
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        let module = first_word(path).to_string();
        let names = path.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        names.skip(1).for_each(|name| _ = handed.insert(name.to_string(), module.clone()));
        left = rest;
    }
    own += left;
    let of_root = made(&own);
    let target = |word: &String| {
        if modules.contains_key(word) {
            return Some(word.clone());
        }
        if of_root.contains(word) {
            return Some(ROOT.to_string());
        }
        handed.get(word).filter(|module| modules.contains_key(*module)).cloned()
    };
    let mut uses = BTreeMap::new();
    for (name, module) in modules {
        let used: BTreeSet<String> = if name == ROOT {
            let mentions = |other: &&String| own.contains(&format!("{other}::"));
            modules.keys().filter(mentions).cloned().collect()
        } else {
            let all = module.files.iter().flat_map(|(place, text)| words(place, text));
            all.filter_map(|word| target(&word)).filter(|used| used != name).collect()
        };
        uses.insert(name.clone(), used);
    }
    uses
}

/// The modules or files that use each other: each that leads back to itself.
fn tied(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let leads_back = |from: &&String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*from]);
        while let Some(name) = next.pop() {
            next.extend(uses.get(name).into_iter().flatten().filter(|used| seen.insert((*used).clone())));
        }
        seen.contains(*from)
    };
    uses.keys().filter(leads_back).cloned().collect()
}

/// A file's code: what it imports, and the rest.
#[derive(Default)]
struct Parts {
    /// Names from elsewhere, each with its path from the root.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules all of whose names it imports.
    globs: Vec<Vec<String>>,
    /// Paths from the root that it uses.
    paths: Vec<Vec<String>>,
    made: BTreeSet<String>,
}

/// A path from the root, if it is one of this crate's: `place` is the file's own.
fn from_root(place: &[String], path: &[&str], is_module: &dyn Fn(&[String]) -> bool) -> Option<Vec<String>> {
    let owned = |path: &[&str]| path.iter().map(ToString::to_string).collect::<Vec<_>>();
    let ups = path.iter().take_while(|part| **part == "super").count();
    match path.first()? {
        &"crate" => Some(owned(&path[1..])),
        &"self" => Some([place, &owned(&path[1..])].concat()),
        &"super" => Some([&place[..place.len().checked_sub(ups)?], &owned(&path[ups..])].concat()),
        first => {
            let below = [place, &[first.to_string()]].concat();
            is_module(&below).then(|| [place, &owned(path)].concat())
        }
    }
}

/// The paths of a `use`, with the name that each gets.
fn leaves(before: &[&str], tree: &str, found: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim();
    if let Some((path, list)) = tree.split_once("::{").or_else(|| tree.strip_prefix('{').map(|list| ("", list))) {
        let before: Vec<&str> = before.iter().copied().chain(path.split("::").filter(|p| !p.is_empty())).collect();
        parts(&format!("{{{list}")).into_iter().filter(|p| !p.is_empty()).for_each(|p| leaves(&before, p, found));
        return;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let mut path: Vec<&str> = before.iter().copied().chain(path.split("::").map(str::trim)).collect();
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let name = name.or(path.last().copied()).unwrap_or_default().to_string();
    found.push((path.iter().map(ToString::to_string).collect(), name));
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A file's imports, and every path of the crate that it uses itself.
fn parts_of(place: &[String], text: &str, is_module: &dyn Fn(&[String]) -> bool) -> Parts {
    let mut of = Parts { made: made(text), ..Parts::default() };
    let (mut body, mut imported, mut left) = (String::new(), Vec::new(), text);
    while let Some((at, statement)) = left.match_indices("use ").find(|(at, _)| {
        let line = left[..*at].rsplit('\n').next().unwrap_or_default().trim();
        line.is_empty() || line.starts_with("pub")
    }) {
        let start = left[..at].rfind('\n').map_or(0, |line| line + 1);
        let is_handed_on = left[start..at].trim().starts_with("pub");
        body += &left[..start];
        let Some((tree, rest)) = left[at + statement.len()..].split_once(';') else { break };
        let mut found = Vec::new();
        leaves(&[], &tree.split_whitespace().collect::<Vec<_>>().join(" "), &mut found);
        imported.extend(found.into_iter().map(|(path, name)| (is_handed_on, path, name)));
        left = rest;
    }
    body += left;
    let words: BTreeSet<&str> = body.split(|c| !is_of_a_word(c)).collect();
    for (is_handed_on, path, name) in imported {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let Some(path) = from_root(place, &path, is_module) else { continue };
        if name == "*" {
            let path = path[..path.len() - 1].to_vec();
            of.globs.push(path.clone());
            if !is_handed_on {
                of.paths.push(path);
            }
            continue;
        }
        if !is_module(&path) && (!is_handed_on || words.contains(&*name)) {
            of.paths.push(path.clone());
        }
        of.imports.insert(name, path);
    }
    for path in body.split(|c| !is_of_a_word(c) && c != ':').filter(|path| path.contains("::")) {
        let path: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
        let of_import = || {
            Some(
                [
                    of.imports.get(*path.first()?)?.as_slice(),
                    &path[1..].iter().map(ToString::to_string).collect::<Vec<_>>(),
                ]
                .concat(),
            )
        };
        of.paths.extend(from_root(place, &path, is_module).or_else(of_import));
    }
    of
}

/// The files that each file of a crate uses.
fn uses_of_files(modules: &BTreeMap<String, Module>) -> BTreeMap<String, BTreeSet<String>> {
    let all: BTreeMap<&[String], &str> =
        modules.values().flat_map(|m| &m.files).map(|(place, text)| (&**place, &**text)).collect();
    let is_module = |place: &[String]| all.contains_key(place);
    let of: BTreeMap<&[String], Parts> =
        all.iter().map(|(place, text)| (*place, parts_of(place, text, &is_module))).collect();
    // The file that makes what a path names. Names are handed on a few times at most.
    let maker = |path: &[String]| {
        let (mut path, mut left) = (path.to_vec(), 8);
        loop {
            let depth = (0..=path.len()).rev().find(|n| is_module(&path[..*n]))?;
            let here = &of[&path[..depth]];
            let next = path.get(depth).filter(|name| !here.made.contains(*name)).and_then(|name| {
                let of_glob = |glob: &&Vec<String>| of.get(&***glob).is_some_and(|of| of.made.contains(name));
                let globbed = || Some([here.globs.iter().find(of_glob)?, &path[depth..]].concat());
                here.imports.get(name).map(|from| [from, &path[depth + 1..]].concat()).or_else(globbed)
            });
            match next {
                Some(next) if left > 0 => (path, left) = (next, left - 1),
                _ => break Some(path[..depth].to_vec()),
            }
        }
    };
    let name = |place: &[String]| if place.is_empty() { ROOT.to_string() } else { place.join("/") };
    let used = |place: &[String], parts: &Parts| {
        let makers = parts.paths.iter().filter_map(|path| maker(path));
        makers.filter(|maker| maker.as_slice() != place).map(|maker| name(&maker)).collect()
    };
    of.iter().map(|(place, parts)| (name(place), used(place, parts))).collect()
}

/// The methods of a text, with the type that each is given to.
fn methods(text: &str) -> Vec<(String, String)> {
    let (mut of, mut all) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("impl") {
            let rest = if rest.starts_with('<') { rest.split_once("> ").map_or(rest, |(_, rest)| rest) } else { rest };
            of = first_word(rest.split(" for ").last().unwrap_or(rest).trim()).to_string();
        }
        let line = line.trim_start();
        let line = ["pub(crate) ", "pub(super) ", "pub ", "const "]
            .iter()
            .fold(line, |line, start| line.trim_start_matches(start));
        if let Some(name) = line.strip_prefix("fn ") {
            all.push((of.clone(), first_word(name).to_string()));
        }
    }
    all
}

/// The faults that go up: a module that uses one not below it, and a call of a method that only
/// floors above give a type.
fn upward(modules: &BTreeMap<String, Module>, floors: &[&[&str]]) -> Vec<String> {
    let floor = |module: &str| floors.iter().position(|floor| floor.contains(&module));
    let mut wrong = Vec::new();
    for (name, used) in uses(modules).iter().filter(|(name, _)| *name != ROOT) {
        let Some(own) = floor(name) else {
            wrong.push(format!("{name} stands on no floor"));
            continue;
        };
        let above = used.iter().filter(|used| floor(used).is_none_or(|of| of >= own));
        wrong.extend(above.map(|used| format!("{name} uses {used}")));
    }
    let inner = || modules.iter().filter_map(|(name, module)| Some((floor(name)?, module)));
    let types: BTreeMap<String, usize> = inner()
        .flat_map(|(at, module)| {
            module.files.iter().flat_map(move |(_, text)| made(text).into_iter().map(move |name| (name, at)))
        })
        .collect();
    // By name: the lowest floor that has such a method, and the lowest that gives it to a type from
    // below.
    let (mut lowest, mut given) = (BTreeMap::new(), BTreeMap::new());
    for (at, module) in inner() {
        for (of, name) in module.files.iter().flat_map(|(_, text)| methods(text)) {
            let is_given = types.get(&of).is_some_and(|of| *of < at) && !COMMON.contains(&&*name);
            let least = lowest.entry(name.clone()).or_insert(at);
            *least = at.min(*least);
            if is_given {
                let least = given.entry(name).or_insert(at);
                *least = at.min(*least);
            }
        }
    }
    for (at, module) in inner() {
        for (place, text) in &module.files {
            let called = given
                .iter()
                .filter(|(name, of)| **of > at && lowest[*name] > at && text.contains(&format!(".{name}(")));
            wrong.extend(called.map(|(name, _)| format!("{} calls {name}", place.join("/"))));
        }
    }
    wrong
}

fn crates() -> Vec<(String, BTreeMap<String, Module>)> {
    let crates = kontig_tidy::root().join("crates");
    let mut all: Vec<PathBuf> =
        fs::read_dir(crates).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    all.sort();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    all.iter().filter(|path| path.join("src").is_dir()).map(|path| (name(path), modules(&path.join("src")))).collect()
}

#[test]
fn no_module_uses_what_is_above_it() {
    let mut wrong = Vec::new();
    for (name, modules) in crates() {
        let expected = TIED.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, tied)| *tied);
        let tied = &tied(&uses(&modules)) | &tied(&uses_of_files(&modules));
        if tied != expected.iter().map(ToString::to_string).collect() {
            wrong.push(format!("{name}: these use each other: {tied:?}, not {expected:?}"));
        }
        if let Some((_, floors)) = FLOORS.iter().find(|(of, _)| *of == name) {
            wrong.extend(upward(&modules, floors).into_iter().map(|what| format!("{name}: {what}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn upward_uses_are_seen() {
    let module = |files: &[(&str, &str)]| Module {
        files: files.iter().map(|(place, text)| (place.split('/').map(str::to_string).collect(), code(text))).collect(),
    };
    let all = |ground: &str| {
        BTreeMap::from([
            (
                ROOT.to_string(),
                Module { files: vec![(Vec::new(), "mod ground;\nmod upper;\npub use upper::Roof;\n".into())] },
            ),
            ("ground".to_string(), module(&[("ground", "pub(crate) struct Stone;\n"), ("ground/deep", ground)])),
            (
                "upper".to_string(),
                module(&[(
                    "upper",
                    "use crate::ground::Stone;\nstruct Roof;\nimpl Stone {\n    pub(crate) fn lift(&self) {}\n}\n",
                )]),
            ),
        ])
    };
    let floors: &[&[&str]] = &[&["ground"], &["upper"]];
    let none = Vec::<String>::new();
    for (ground, found) in [
        ("fn f() {}", none.clone()),
        ("// crate::upper::Roof\n#[cfg(test)]\nmod tests {\n    use crate::upper::Roof;\n}", none.clone()),
        ("#[cfg(test)]\n#[allow(unused)]\nfn f(\n    of: crate::upper::Roof,\n) {\n}\nfn g() {}", none),
        ("#[cfg(test)]\nmod tests;\nuse crate::upper::Roof;", vec!["ground uses upper".to_string()]),
        ("#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nuse crate::upper::Roof;", vec!["ground uses upper".into()]),
        ("use crate::upper::Roof;", vec!["ground uses upper".into()]),
        ("use crate::{ground::Stone, upper::{Roof}};", vec!["ground uses upper".into()]),
        ("use super::super::upper::Roof;", vec!["ground uses upper".into()]),
        ("use crate::Roof;", vec!["ground uses upper".into()]),
        ("impl crate::upper::Roof {}", vec!["ground uses upper".into()]),
        ("fn f(s: super::Stone) { s.lift() }", vec!["ground/deep calls lift".into()]),
    ] {
        assert_eq!(upward(&all(ground), floors), found, "{ground}");
        assert_eq!(tied(&uses(&all(ground))).is_empty(), !found.iter().any(|what| what.contains("uses")), "{ground}");
    }
}

#[test]
fn files_that_use_each_other_are_seen() {
    let tied_with = |upper: &str, lower: &str| {
        let files = [
            ("a", "pub(crate) mod upper;\nmod lower;\npub(crate) use lower::Low;\npub(crate) struct Own;\n"),
            ("a/upper", upper),
            ("a/lower", lower),
        ];
        let place = |place: &str| place.split('/').map(str::to_string).collect();
        let files = files.iter().map(|(at, text)| (place(at), code(text))).collect();
        let modules = BTreeMap::from([
            (ROOT.to_string(), Module { files: vec![(Vec::new(), "mod a;\n".into())] }),
            ("a".to_string(), Module { files }),
        ]);
        tied(&uses_of_files(&modules)).into_iter().collect::<Vec<_>>().join(" ")
    };
    let lower = "pub(crate) struct Low;\n";
    for (upper, lower, found) in [
        ("use super::Low;\nuse super::Own;\nfn high() {}\n", lower.to_string(), ""),
        (
            "use super::Low;\nfn high() {}\n",
            format!("use super::upper;\n{lower}fn f() {{ upper::high() }}\n"),
            "a/lower a/upper",
        ),
        (
            "use crate::a::{Low, Own};\nfn high() {}\n",
            format!("{lower}fn f() {{ crate::a::upper::high() }}\n"),
            "a/lower a/upper",
        ),
        ("fn high(_: super::Low) {}\n", format!("{lower}fn f() {{ super::upper::high() }}\n"), "a/lower a/upper"),
        ("use super::*;\nfn high() {}\n", format!("use super::upper::high as f;\n{lower}"), ""),
    ] {
        assert_eq!(tied_with(upper, &lower), found, "{upper}{lower}");
    }
}
