//! Recordings of reclaim: parsing, and errors in one line that names the file and the line in it.

use kontig_mm::Pfn;
use kontig_oracle::difference::{At, Difference};
use kontig_oracle::recording::lru::{self, OwnedBy};
use kontig_oracle::recording::{NODE, Part};
use kontig_oracle::trace::lru::{Answer, FilePage, LruOp, Page, ProcessPage};
use kontig_oracle::{Recording, Verdict, verify};
use lzma_rust2::XzReader;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ABOUT: &str = "schema = \"kontig.recording/1\"\nexperiment = \"lru\"\nkernel = \"6.1.0-56-cloud-amd64\"\n\
    version = \"6.1.192\"\nseries = \"6.1\"\nops = 6\n";

const OPS: &str = "\
read f0:1f 0 movable direct retry = 10043f referenced
add f1:2 1 movable kswapd = 100440 shadow active workingset
dump = 0
store a:7 = 100442 dirty
load a:8 = failed
touch f0:20 = skipped
";

/// A state without its last line.
const STATE: &str = "\
EVENT pgscan_direct 40
NODE 1 flags 0 kswapd_order 0 kswapd_highest_zoneidx 5 kswapd_failures 2
LRUVEC anon_cost 3 file_cost 4 nonresident_age 2800 refaults 5 6 flags 1
STAT node threshold 4
STAT node nr_inactive_file 1 -1
STAT Normal threshold 4
STAT Normal nr_free_pages 258 0
LIST inactive_anon 2
100442 RSDM a:7
100443 S a:9@1f
LIST active_anon 0
LIST inactive_file 1
10043f R f0:1f
LIST active_file 1
100440+1 AW f1:2
BATCH lru_add 1
100444 - f0:21
BATCH deactivate_file 0
BATCH deactivate 0
BATCH lazyfree 0
BATCH activate 1
10043f R f0:1f
BATCH rotate 0
SHADOW f2:0 af0 1
SWAPPED a:a 20
SWAPPED a:9b 1f
";

fn finished(state: &str) -> String {
    format!("{state}END {}\n", state.len())
}

/// Any state of the allocator does.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden/6.1-mixed100k")
}

/// A folder that holds such a recording.
struct Made {
    _parent: TempDir,
    dir: PathBuf,
}

impl Made {
    fn new() -> Made {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let dir = parent.path().join("6.1-lru");
        std::fs::create_dir(&dir).expect("a new folder");
        let packed = std::fs::read(golden().join("t0.snap.xz")).expect("a golden recording");
        let mut snap = String::new();
        XzReader::new(packed.as_slice(), false).read_to_string(&mut snap).expect("a whole xz file");
        let made = Made { _parent: parent, dir };
        made.write("recording.toml", ABOUT).write("lru.txt", OPS);
        for state in ["t0", "d0", "t1"] {
            made.write(&format!("{state}.snap"), &snap).write(&format!("{state}.lru"), &finished(STATE));
        }
        made
    }

    fn write(&self, file: &str, text: &str) -> &Made {
        std::fs::write(self.dir.join(file), text).expect("writable");
        self
    }

    fn remove(&self, file: &str) -> &Made {
        std::fs::remove_file(self.dir.join(file)).expect("a file of the recording");
        self
    }

    /// It is refused with one line that says all of this.
    #[track_caller]
    fn refused(&self, says: &[&str]) {
        let line = verify(&self.dir).expect_err("refused").to_string();
        assert!(says.iter().all(|s| line.contains(s)) && !line.contains('\n'), "{line}");
    }
}

/// A state in which one text stands for another is refused with one line that says all of this.
#[track_caller]
fn state_refused(from: &str, to: &str, says: &[&str]) {
    assert!(STATE.contains(from), "the state has no '{from}'");
    Made::new().write("t1.lru", &finished(&STATE.replacen(from, to, 1))).refused(says);
}

#[test]
fn operations_and_states_are_read_as_they_are_written() {
    let made = Made::new();
    let recording = Recording::open(&made.dir).expect("a recording");
    let ops = recording.lru_operations().expect("operations");
    let (op, answer) = ops[1];
    assert!(matches!(op, LruOp::Add { page: FilePage { file: 1, index: 2 }, order, .. } if order.get() == 1));
    assert_eq!(answer, Answer::Page(Page::new(Pfn::new(0x10_0440), &["shadow", "active", "workingset"])));

    let state = recording.lru_state("d0", NODE).expect("a state");
    let [inactive_anon, _, _, active_file] = &state.lists;
    assert!(inactive_anon[0].flags.mapped() && inactive_anon[0].flags.dirty() && inactive_anon[0].slot.is_none());
    assert_eq!((inactive_anon[1].slot, active_file[0].order.get()), (Some(0x1f), 1));
    assert_eq!(active_file[0].owner, OwnedBy::File(FilePage { file: 1, index: 2 }));
    assert_eq!((state.batches[0][0].len(), state.batches[0][4].len()), (1, 1));
    assert_eq!((state.shadows[0].age, state.shadows[0].workingset), (0xaf0, true));
    assert_eq!(state.events["pgscan_direct"], 40);
    assert_eq!(state.swapped[&ProcessPage(0xa)], 0x20);
    assert_eq!(
        ["anon_cost", "refaults_file", "kswapd_failures", "lruvec_flags"].map(|n| state.number(n)),
        [3, 6, 2, 1]
    );
    assert_eq!(state.counters[&("node".into(), "nr_inactive_file".into())].unfolded[0], -1);
    assert_eq!(recording.parts(), Ok(vec![Part::Reclaim]));
}

#[test]
fn a_recording_without_its_lru_part_names_the_file() {
    Made::new().remove("t1.lru").refused(&["t1.lru: is missing"]);
    Made::new().remove("d0.lru").refused(&["d0.lru: is missing"]);
    Made::new().remove("lru.txt").refused(&["lru.txt: is missing"]);
    Made::new().remove("t1.snap").refused(&["t1.snap: is missing"]);
}

#[test]
fn a_page_on_two_lists_is_named_with_both() {
    let twice = "100440+1 AW f1:2\n10043f A f1:4";
    let from = "LIST active_file 1\n100440+1 AW f1:2";
    state_refused(
        from,
        &format!("LIST active_file 2\n{twice}"),
        &["t1.lru: line 16: page 0x10043f is on two lists: inactive_file (line 13) and active_file"],
    );
    state_refused("100444 - f0:21", "10043f - f0:21", &["line 17: page 0x10043f is on two lists", "and lru_add"]);
    state_refused("100444 - f0:21", "100444 - f0:1f", &["line 17: the page of line 13 belongs to the same"]);
}

#[test]
fn a_swap_entry_nobody_holds_is_named_with_its_page() {
    let says = ["t1.lru: line 10: swap entry 1f of page 0x100443 is held by nobody"];
    state_refused("SWAPPED a:9b 1f\n", "", &says);
    let mapped = STATE.replace("100443 S a:9@1f", "100443 SM a:9@1f").replace("SWAPPED a:9b 1f\n", "");
    assert!(lru::parse(Path::new("t1.lru"), &finished(&mapped)).is_ok(), "the process itself holds it");
    state_refused("SWAPPED a:a 20", "SWAPPED a:7 20", &["line 25: a:7 is in memory, too: line 9"]);
}

#[test]
fn cut_or_malformed_files_are_refused_with_the_line() {
    Made::new().write("t1.lru", STATE).refused(&["t1.lru: is cut short"]);
    Made::new().write("t1.lru", &format!("{STATE}END 3\n")).refused(&["t1.lru: END says 3 bytes"]);
    state_refused("LIST inactive_file 1", "LIST inactive_file 2", &["line 14: line 12 says that 1 more pages"]);
    state_refused(
        "LIST inactive_file 1\n10043f R f0:1f\n",
        "",
        &["line 12: LIST active_file stands where inactive_file"],
    );
    state_refused("BATCH rotate 0\n", "", &["rotate is missing"]);
    state_refused("RSDM", "RSDX", &["line 9: 'RSDX' are no flags"]);
    state_refused("100440+1", "100440+11", &["line 15: ", "no possible order"]);
    state_refused("kswapd_failures 2", "kswapd_failures", &["line 2: 'kswapd_failures' has no number"]);
    state_refused("a:9@1f", "b:9@1f", &["line 10: 'b' is no file"]);
    state_refused(
        "SHADOW f2:0 af0 1\n",
        "SHADOW f0:1f af0 1\n",
        &["line 24: f0:1f is in line 13, too: record it again"],
    );
    let refused = |from: &str, to: &str, says: &str| {
        Made::new().write("lru.txt", &OPS.replacen(from, to, 1)).refused(&["lru.txt: ", says]);
    };
    refused("touch f0:20 = skipped", "touch f0:20", "line 6: has no answer");
    refused("dump = 0", "dump = 1", "line 3: '1' is the answer to the dump with number 0");
    refused("touch f0:20 = skipped\n", "", "5 operations, but recording.toml says 6");
    refused("store a:7", "stare a:7", "line 4: 'stare a:7' is no operation");
}

#[test]
fn lines_that_every_kernel_has_must_be_there_once() {
    let node = "NODE 1 flags 0 kswapd_order 0 kswapd_highest_zoneidx 5 kswapd_failures 2\n";
    let lruvec = "LRUVEC anon_cost 3 file_cost 4 nonresident_age 2800 refaults 5 6 flags 1\n";
    let again = "record it again with 'kontig oracle record'";
    state_refused(node, "", &["t1.lru: line 1: NODE is missing", again]);
    state_refused(lruvec, "", &["t1.lru: line 1: LRUVEC is missing", again]);
    state_refused(" kswapd_failures 2", "", &["t1.lru: line 2: NODE has no 'kswapd_failures'", again]);
    state_refused(" anon_cost 3", "", &["t1.lru: line 3: LRUVEC has no 'anon_cost'", again]);
    state_refused("STAT node threshold 4\n", "", &["t1.lru: line 4: 'STAT node threshold' is missing", again]);
    state_refused("STAT Normal threshold 4\n", "", &["t1.lru: line 6: 'STAT Normal threshold' is missing", again]);
    state_refused(node, &format!("{node}{node}"), &["t1.lru: line 3: NODE is said in line 2 already", again]);
    let counter = "STAT Normal nr_free_pages 258 0\n";
    let twice = format!("{counter}STAT Normal nr_free_pages 259 0\n");
    state_refused(counter, &twice, &["line 8: STAT Normal nr_free_pages is said in line 7 already", again]);
    state_refused("EVENT pgscan_direct 40\n", "EVENT pgscan_direct 40\nEVENT pgscan_direct 41\n", &["line 2: ", again]);
}

#[test]
fn a_place_in_swap_holds_one_page() {
    let again = "record it again with 'kontig oracle record'";
    let says = ["t1.lru: line 26: swap entry 20 holds another page: line 25: ", again];
    state_refused("SWAPPED a:9b 1f\n", "SWAPPED a:9b 20\nSWAPPED a:9c 1f\n", &says);
    let says = ["t1.lru: line 10: swap entry 1f holds another page: line 9: ", again];
    state_refused("100442 RSDM a:7\n", "100442 RSDM a:7@1f\n", &says);
}

/// LRU state of a node on which nothing has happened.
const NOTHING: &str = "\
NODE 1 flags 0 kswapd_order 0 kswapd_highest_zoneidx 5 kswapd_failures 0
LRUVEC anon_cost 0 file_cost 0 nonresident_age 0 refaults 0 0 flags 0
STAT node threshold 10
STAT Normal threshold 10
LIST inactive_anon 0
LIST active_anon 0
LIST inactive_file 0
LIST active_file 0
BATCH lru_add 0
BATCH deactivate_file 0
BATCH deactivate 0
BATCH lazyfree 0
BATCH activate 0
BATCH rotate 0
";

/// A recording of a dump and nothing else.
fn quiet() -> Made {
    let made = Made::new();
    let about = ABOUT.replace("ops = 6", "ops = 1");
    let counters = std::fs::read(golden().join("t0.vmstat.xz")).expect("counters");
    for name in ["t0", "t1"] {
        std::fs::write(made.dir.join(format!("{name}.vmstat.xz")), &counters).expect("writable");
    }
    for state in ["t0", "d0", "t1"] {
        made.write(&format!("{state}.lru"), &finished(NOTHING));
    }
    let frames = "u".repeat(524_288);
    made.write("recording.toml", &about)
        .write("lru.txt", "dump = 0\n")
        .write("trace.txt", "")
        .write("t0.pages", &frames);
    made
}

/// The first difference of its replay.
#[track_caller]
fn difference(made: &Made) -> Difference {
    match verify(&made.dir) {
        Ok(Verdict::Different(difference)) => *difference,
        other => panic!("{other:?}"),
    }
}

#[test]
fn states_are_counted_with_what_is_in_them() {
    let Ok(Verdict::Equal(compared)) = verify(&quiet().dir) else { panic!("not equal") };
    assert_eq!((compared.lru_states, compared.lru_pages, compared.final_states), (2, 0, 1));
    assert!(compared.lists > 10 && compared.listed > 100, "free lists: {compared:?}");
}

#[test]
fn a_state_that_differs_is_named() {
    let made = quiet();
    let snap = std::fs::read_to_string(made.dir.join("d0.snap")).expect("a state");
    made.write("d0.snap", &snap.replace("considered 0", "considered 1"));
    assert_eq!(difference(&made).at, At::State("d0: Normal, COMPACT".into()));
    let made = quiet();
    made.write("t1.lru", &finished(&NOTHING.replace("Normal threshold 10", "Normal threshold 8")));
    assert_eq!(difference(&made).at, At::State("t1: threshold of Normal".into()));
}

#[test]
fn writes_and_shrinks_by_the_kernel_alone_are_differences() {
    let made = quiet();
    let flags = "flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC";
    made.write(
        "trace.txt",
        &format!("kswapd1-39 [000] ..... 4344: mm_vmscan_write_folio: page=0 pfn=0x107e46 {flags}\n"),
    );
    let d = difference(&made);
    assert_eq!((d.at, d.kernel), (At::Event(0), format!("mm_vmscan_write_folio: pfn=0x107e46 {flags}")));
    let shrunk = "nid: 1 unused scan count 0 new scan count 2 total_scan 2 last shrinker return val 0";
    made.write(
        "trace.txt",
        &format!("runner-1 [000] ..... 14: mm_shrink_slab_end: scan+0x0/0x90 [kontig] (ptr): {shrunk}\n"),
    );
    assert_eq!(difference(&made).kernel, format!("mm_shrink_slab_end: {shrunk}"));
}

#[test]
fn a_replay_begins_without_shadows_and_pages_in_swap() {
    let made = quiet();
    for (line, what) in [("SHADOW f2:0 af0 1\n", "1 shadows"), ("SWAPPED a:a 20\n", "1 pages in swap")] {
        let lru = finished(&format!("{NOTHING}{line}"));
        made.write("t0.lru", &lru).refused(&["t0.lru: ", what, "at the start", "record it again from an empty node"]);
    }
}

/// Text that is likely to be taken for something.
const WORDS: &[&str] = &[
    "-1",
    "0",
    "1",
    "4294967296",
    "18446744073709551616",
    "f0:1f",
    "a:7",
    "a:7@1f",
    "?",
    "-",
    "ASM",
    "100440",
    "100440+9",
    "END",
    "LIST",
    "BATCH",
    "LIST active_file 1",
    "BATCH lru_add 1",
    "\n",
    "= ",
    "= failed",
    "shadow",
    "read",
    "refaults",
];

/// A text with some of its words replaced, and lines lost or doubled.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let change = (any::<Index>(), 0..4u8, select(WORDS));
    prop::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        for (at, kind, word) in changes {
            let at = at.index(lines.len());
            match kind {
                0 if lines.len() > 1 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[at].clone()),
                2 => lines[at] = word.to_string(),
                _ => {
                    let mut words: Vec<&str> = lines[at].split(' ').collect();
                    let which = word.len() % words.len();
                    words[which] = word;
                    lines[at] = words.join(" ");
                }
            }
        }
        lines.iter().flat_map(|l| [l.as_str(), "\n"]).collect()
    })
}

proptest! {
    #[test]
    fn whatever_a_state_holds_it_is_read_or_refused_in_one_line(text in damaged(STATE)) {
        if let Err(e) = lru::parse(Path::new("t1.lru"), &finished(&text)) {
            prop_assert!(!e.to_string().contains('\n'), "{e}");
        }
    }

    #[test]
    fn whatever_a_line_of_operations_holds_it_is_read_or_refused_in_one_line(text in damaged(OPS)) {
        for line in text.lines() {
            match kontig_oracle::trace::lru::parse_answered(line) {
                Ok((op, answer)) => prop_assert_eq!(
                    kontig_oracle::trace::lru::parse_answered(&format!("{op} = {answer}")), Ok((op, answer))
                ),
                Err(e) => prop_assert!(!e.contains('\n'), "{}", e),
            }
        }
    }
}
