//! Texts of real kernels parse and print back byte for byte, and are refused when cut short.

use kontig_procfs::{BadText, BuddyInfo, Choice, MemInfo, PageTypeInfo, Pressure, SlabInfo, VmStat, ZoneInfo};
use lzma_rust2::XzReader;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Parses a text and prints it again.
type Reprint = fn(&str, &str) -> Result<String, BadText>;

macro_rules! reprint {
    ($type:ty) => {
        |file, text| <$type>::parse(file, text).map(|parsed| parsed.to_string())
    };
}

/// How a file is parsed, by its name's last part.
fn reprint(file: &str) -> Option<Reprint> {
    Some(match file {
        "buddyinfo" => reprint!(BuddyInfo),
        "pagetypeinfo" => reprint!(PageTypeInfo),
        "zoneinfo" => reprint!(ZoneInfo),
        "vmstat" => reprint!(VmStat),
        "meminfo" => reprint!(MemInfo),
        "memory" | "cpu" | "io" => reprint!(Pressure),
        "enabled" | "defrag" | "shmem_enabled" => reprint!(Choice),
        _ => return None,
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|p| if p.is_dir() { files_below(&p) } else { vec![p] }).collect()
}

/// Files that each hold all memory texts of a host, each text behind its path.
const HOSTS: &str = "crates/live/hosts";

/// The texts of whole hosts that have a printer.
fn hosts() -> Vec<(String, Reprint, String)> {
    let mut texts = Vec::new();
    for file in files_below(&root().join(HOSTS)).iter().filter(|file| file.extension().is_some_and(|e| e == "txt")) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for (path, text) in text.split("=== /").filter_map(|t| t.split_once('\n')) {
            let reprint: Reprint = match path.rsplit('/').next().and_then(reprint) {
                _ if path.contains("/node/") && path.ends_with("/meminfo") => continue,
                _ if path == "proc/slabinfo" => reprint!(SlabInfo),
                // Others of these names hold a number: 0 or 1.
                Some(reprint) if text.contains(' ') => reprint,
                _ => continue,
            };
            texts.push((format!("{}: {path}", file.display()), reprint, text.to_string()));
        }
    }
    texts
}

/// All proc texts of the recordings, and those of each kernel kept beside the crate's sources.
fn texts() -> Vec<(String, Reprint, String)> {
    let root = root();
    let folders = ["oracle/golden", "oracle/differing", "crates/procfs/kernels", "crates/oracle/tests/data/procfs"];
    let mut texts = Vec::new();
    for path in folders.iter().flat_map(|folder| files_below(&root.join(folder))) {
        let shown = path.strip_prefix(&root).expect("below the root").display().to_string();
        let name = shown.strip_suffix(".xz").unwrap_or(&shown);
        let Some(reprint) = name.rsplit(['.', '/']).next().and_then(reprint) else { continue };
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{shown}: {e}"));
        let text = if shown.ends_with(".xz") {
            let mut text = String::new();
            XzReader::new(bytes.as_slice(), false).read_to_string(&mut text).unwrap_or_else(|e| panic!("{shown}: {e}"));
            text
        } else {
            String::from_utf8(bytes).unwrap_or_else(|e| panic!("{shown}: {e}"))
        };
        texts.push((shown, reprint, text));
    }
    texts
}

#[test]
fn a_kernels_texts_are_printed_back_byte_for_byte() {
    let mut seen = BTreeMap::new();
    for (file, reprint, text) in texts() {
        let again = reprint(&file, &text).unwrap_or_else(|e| panic!("{e}"));
        if let Some((n, (was, is))) = text.lines().zip(again.lines()).enumerate().find(|(_, (was, is))| was != is) {
            panic!("{file}: line {}:\n  was {was:?}\n  is  {is:?}", n + 1);
        }
        assert_eq!(again, text, "{file}");
        let name = file.strip_suffix(".xz").unwrap_or(&file).rsplit(['.', '/']).next().expect("a name");
        *seen.entry(name.to_string()).or_insert(0) += 1;
    }
    for name in ["meminfo", "memory", "cpu", "io", "enabled", "defrag", "shmem_enabled"] {
        assert!(seen.get(name).is_some_and(|n| *n >= 4), "{name}: {seen:?}");
    }
    for name in ["buddyinfo", "pagetypeinfo", "zoneinfo", "vmstat"] {
        assert!(seen.get(name).is_some_and(|n| *n > 4), "{name}: {seen:?}");
    }
}

#[test]
fn the_texts_of_whole_hosts_are_printed_back_byte_for_byte() {
    let texts = hosts();
    for (file, reprint, text) in &texts {
        let again = reprint(file, text).unwrap_or_else(|e| panic!("{e}"));
        if let Some((n, (was, is))) = text.lines().zip(again.lines()).enumerate().find(|(_, (was, is))| was != is) {
            panic!("{file}: line {}:\n  was {was:?}\n  is  {is:?}", n + 1);
        }
        assert_eq!(again, *text, "{file}");
    }
    for name in ["proc/slabinfo", "proc/vmstat", "node0/vmstat"] {
        assert!(texts.iter().filter(|(file, ..)| file.ends_with(name)).count() >= 4, "{name}");
    }
}

#[test]
fn a_text_cut_within_a_line_is_refused_with_its_file_and_line() {
    for (file, reprint, text) in texts().into_iter().filter(|(file, ..)| file.contains("procfs/kernels")) {
        for (at, _) in text.char_indices().filter(|(at, _)| *at > 0 && !text[..*at].ends_with('\n')) {
            let cut = &text[..at];
            let e = reprint(&file, cut).expect_err(&file);
            assert_eq!((e.file.as_str(), e.line), (file.as_str(), cut.lines().count()), "{e}");
        }
        assert_eq!(reprint(&file, "").expect_err("empty").to_string(), format!("{file}: line 1: the file is empty"));
    }
}

#[test]
fn a_zoneinfo_cut_between_lines_is_refused_but_where_a_whole_zone_or_node_ends() {
    for (file, reprint, text) in texts().into_iter().filter(|(file, ..)| file.ends_with("kernels/6.1/zoneinfo")) {
        let accepted = accepted_cuts(&file, reprint, &text);
        // Old kernels list only zones with memory; the first zone without any shows that this one
        // lists all.
        let ends = ["Node 0, zone    DMA32", "Node 0, zone   Normal", "Node 1, zone      DMA"];
        assert_eq!(accepted, ends, "{file}");
    }
}

#[test]
fn a_pagetypeinfo_cut_between_lines_is_refused_but_where_a_whole_node_ends() {
    for (file, reprint, text) in texts().into_iter().filter(|(file, ..)| file.ends_with("kernels/6.1/pagetypeinfo")) {
        assert_eq!(accepted_cuts(&file, reprint, &text), ["Page block order: 9"], "{file}");
    }
}

/// The lines before which a text may end and still be read. Every other cut is refused at its last
/// line.
fn accepted_cuts(file: &str, reprint: Reprint, text: &str) -> Vec<String> {
    let mut accepted = Vec::new();
    for (at, _) in text.match_indices('\n').filter(|(at, _)| at + 1 < text.len()) {
        let (cut, rest) = text.split_at(at + 1);
        match reprint(file, cut) {
            Ok(_) => accepted.push(rest.lines().next().unwrap_or_default().to_string()),
            Err(e) => assert_eq!((e.file.as_str(), e.line), (file, cut.lines().count()), "{e}"),
        }
    }
    accepted
}
