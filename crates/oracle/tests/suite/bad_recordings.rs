//! A recording is untrusted input. Any defect is one line that names the file and the mistake; and
//! a difference between engine and kernel is found at the very operation, event or line.

use kontig_oracle::difference::{At, Difference};
use kontig_oracle::{Verdict, verify};
use lzma_rust2::XzReader;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A copy of a golden recording, its files unpacked, under a name of its own.
struct Copy {
    _parent: TempDir,
    dir: PathBuf,
}

impl Copy {
    fn of(recording: &str, name: &str) -> Copy {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let dir = parent.path().join(name);
        std::fs::create_dir(&dir).expect("a new folder");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden").join(recording);
        for entry in std::fs::read_dir(golden).expect("a golden recording") {
            let path = entry.expect("a file").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).expect("readable");
            match file.strip_suffix(".xz") {
                Some(plain) => {
                    let mut out = Vec::new();
                    XzReader::new(bytes.as_slice(), false).read_to_end(&mut out).expect("a whole xz file");
                    std::fs::write(dir.join(plain), out).expect("writable");
                }
                None => std::fs::write(dir.join(file), bytes).expect("writable"),
            }
        }
        Copy { _parent: parent, dir }
    }

    fn mixed() -> Copy {
        Copy::of("6.1-mixed100k", "6.1-changed")
    }

    fn change(&self, file: &str, f: impl FnOnce(Vec<u8>) -> Vec<u8>) -> &Copy {
        let path = self.dir.join(file);
        let bytes = std::fs::read(&path).expect("a file of the recording");
        std::fs::write(path, f(bytes)).expect("writable");
        self
    }

    fn replace(&self, file: &str, from: &str, to: &str) -> &Copy {
        self.change(file, |b| {
            let text = String::from_utf8(b).expect("text");
            assert!(text.contains(from), "{file} has no '{from}'");
            text.replacen(from, to, 1).into()
        })
    }

    fn remove(&self, file: &str) -> &Copy {
        std::fs::remove_file(self.dir.join(file)).expect("a file of the recording");
        self
    }

    /// The recording is refused with one line that says all of this.
    #[track_caller]
    fn refused(&self, says: &[&str]) {
        let line = verify(&self.dir).expect_err("refused").to_string();
        assert!(says.iter().all(|s| line.contains(s)) && !line.contains('\n'), "{line}");
    }

    #[track_caller]
    fn difference(&self) -> Difference {
        match verify(&self.dir) {
            Ok(Verdict::Different(d)) => *d,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_pfn_that_is_not_the_engines_is_reported_with_its_operation_and_the_state_around() {
    let copy = Copy::mixed();
    // Operation 60,003 is an allocation; its pfn is changed in one bit.
    copy.change("res.bin", |mut b| {
        b[4 * 60_003] ^= 1;
        b
    });
    let d = copy.difference();
    assert_eq!(d.at, At::Operation(60_003));
    assert!(d.asked.as_ref().is_some_and(|a| a.starts_with("alloc of order ")), "{d}");
    assert_ne!(d.kernel, d.engine);
    let report = d.to_string();
    for part in [
        "the operations before it",
        "60002: free of block 18749: freed 0x11e323",
        "marks min 1169 low 1683",
        "per-CPU list ",
        "mm_page_alloc: ",
    ] {
        assert!(report.contains(part), "'{part}' is not in:\n{report}");
    }
}

#[test]
fn a_final_state_that_is_not_the_engines_is_reported_with_its_line() {
    let copy = Copy::mixed();
    copy.replace("t1.snap", "considered 0", "considered 1");
    let d = copy.difference();
    assert_eq!(d.at, At::FinalState("COMPACT".into()));
    assert!(d.kernel.contains("considered 1") && d.engine.contains("considered 0"), "{d}");
}

#[test]
fn an_event_a_migration_and_a_counter_are_reported_by_their_number_and_name() {
    let copy = Copy::of("6.1-module-compact", "6.1-changed");
    for file in ["res.bin", "trace.bin"] {
        copy.remove(file);
    }
    copy.replace("f1.vmstat", "compact_isolated ", "compact_isolated 1");
    assert_eq!(copy.difference().at, At::Counter("compact_isolated".into()));
    copy.replace("mig.txt", "\nc7a 7fe2c\n", "\nc7a 7fe2a\n");
    let d = copy.difference();
    assert_eq!(d.at, At::Migration(2));
    assert_eq!((d.kernel.as_str(), d.engine.as_str()), ("0x100c7a to 0x17fe2a", "0x100c7a to 0x17fe2c"));
    copy.replace("trace.txt", "nr_migrated=32", "nr_migrated=31");
    let d = copy.difference();
    assert!(
        matches!(d.at, At::Event(_)) && d.engine == "mm_compaction_migratepages: nr_migrated=32 nr_failed=0",
        "{d}"
    );
}

#[test]
fn a_file_that_is_missing_or_cut_short_is_named() {
    Copy::mixed().remove("res.bin").refused(&["res.bin: is missing"]);
    Copy::mixed().remove("t0.snap").refused(&["t0.snap: is missing"]);
    let direct = Copy::of("6.1-direct-unmovable", "6.1-direct-unmovable");
    direct.remove("f0.snap").refused(&["f0.snap: is missing"]);
    let cut = |file: &str, by: usize| {
        let copy = Copy::mixed();
        copy.change(file, |mut b| {
            b.truncate(b.len() - by);
            b
        });
        copy
    };
    cut("trace.bin", 3).refused(&["trace.bin: ", "ends within operation 99999"]);
    cut("trace.bin", 8).refused(&["res.bin: ", "100000 results of 99999 operations"]);
    cut("res.bin", 1).refused(&["res.bin: ", "4-byte words"]);
    cut("t0.snap", 20).refused(&["t0.snap: ", "END"]);
    cut("t1.snap", 2000).refused(&["t1.snap: "]);
    verify(Path::new("no/such/folder")).expect_err("refused");
}

#[test]
fn an_xz_file_that_is_cut_short_or_damaged_is_named() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden/6.1-mixed100k/res.bin.xz");
    let whole = std::fs::read(golden).expect("readable");
    let copy = Copy::mixed();
    copy.remove("res.bin");
    for at in [0, 11, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(copy.dir.join("res.bin.xz"), &whole[..at]).expect("writable");
        copy.refused(&["res.bin.xz: the xz file is "]);
    }
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    std::fs::write(copy.dir.join("res.bin.xz"), damaged).expect("writable");
    copy.refused(&["res.bin.xz: the xz file is damaged"]);
}

#[test]
fn an_operation_no_kernel_can_do_is_named() {
    let with = |at: usize, byte: u8| {
        let copy = Copy::mixed();
        copy.change("trace.bin", |mut b| {
            b[8 * 17 + at] = byte;
            b
        });
        copy
    };
    with(0, 9).refused(&["trace.bin: operation 17: unknown operation code 9"]);
    with(6, 0xff).refused(&["trace.bin: operation 17: ", "out of range"]);
}

#[test]
fn a_state_that_contradicts_itself_is_refused() {
    let copy = Copy::mixed();
    copy.replace("t0.snap", "VMSTAT 512908", "VMSTAT 512909");
    copy.refused(&["t0.snap: the state contradicts itself: "]);
}

#[test]
fn a_kernel_nobody_has_a_profile_for_is_named_with_those_there_are() {
    let copy = Copy::of("6.1-mixed100k", "9.9-foo");
    copy.remove("recording.toml").refused(&["9.9-foo: no profile for kernel 9.9; known: 3.13, 4.4"]);
    let copy = Copy::of("6.1-mixed100k", "foo");
    copy.remove("recording.toml").refused(&["recording.toml: is missing, and the folder"]);
}

#[test]
fn a_recording_that_describes_itself_wrongly_is_refused_with_the_line() {
    let copy = Copy::mixed();
    copy.replace("recording.toml", "schema = \"kontig.recording/1\"", "schema = \"kontig.recording/2\"");
    copy.refused(&["recording.toml: schema 'kontig.recording/2' is not 'kontig.recording/1'"]);
    let copy = Copy::mixed();
    copy.replace("recording.toml", "series = \"6.1\"", "series = 6.1");
    copy.refused(&["recording.toml: line 5: "]);
    for ops in ["-4", "4"] {
        let copy = Copy::mixed();
        copy.replace("recording.toml", "ops = 100000", &format!("ops = {ops}"));
        copy.refused(&["recording.toml: line 6: ", &format!("ops = {ops}"), "100000"]);
    }
}

#[test]
fn a_folder_without_recording_toml_is_understood_by_its_name() {
    let copy = Copy::mixed();
    copy.remove("recording.toml");
    assert!(matches!(verify(&copy.dir), Ok(Verdict::Equal(_))));
    let copy = Copy::of("6.1-anon-proactive40-random", "6.1-anon-proactive40-random");
    copy.remove("recording.toml");
    assert!(matches!(verify(&copy.dir), Ok(Verdict::Equal(_))));
    let copy = Copy::of("6.1-direct-movable", "6.1-direct-movable");
    copy.remove("recording.toml");
    assert!(matches!(verify(&copy.dir), Ok(Verdict::Equal(_))));
}

#[test]
fn a_file_may_stand_in_another_folder_and_one_that_does_not_is_one_line() {
    let copy = Copy::mixed();
    let other = copy.dir.with_file_name("other");
    std::fs::create_dir(&other).expect("a new folder");
    std::fs::rename(copy.dir.join("trace.bin"), other.join("trace.bin")).expect("moved");
    let refer = |dir: &Path, to: &str| {
        let mut about = std::fs::read_to_string(dir.join("recording.toml")).unwrap_or_default();
        about.truncate(about.find("\n[files]").unwrap_or(about.len()));
        std::fs::write(dir.join("recording.toml"), format!("{about}\n[files]\n\"trace.bin\" = \"{to}\"\n"))
            .expect("written");
    };
    refer(&copy.dir, "../other/trace.bin");
    assert!(matches!(verify(&copy.dir), Ok(Verdict::Equal(_))));
    refer(&copy.dir, "../nowhere/trace.bin");
    copy.refused(&["recording.toml: says that trace.bin is ../nowhere/trace.bin, and no such file is there"]);
    // Each says that the other has it.
    std::fs::rename(other.join("trace.bin"), other.join("kept")).expect("moved");
    refer(&other, "../6.1-changed/trace.bin");
    refer(&copy.dir, "../other/trace.bin");
    copy.refused(&["recording.toml: says that trace.bin is ../other/trace.bin, and no such file is there"]);
    let about = std::fs::read_to_string(copy.dir.join("recording.toml")).expect("it was written");
    std::fs::write(copy.dir.join("recording.toml"), about.replace("\"trace.bin\" =", "\"f0.pagess\" ="))
        .expect("written");
    copy.refused(&["recording.toml: [files] names f0.pagess; a recording's files end in .bin, .snap"]);
    refer(&copy.dir, "trace.bin");
    copy.refused(&["recording.toml: says that trace.bin is trace.bin, and no such file is there"]);
    std::fs::rename(other.join("kept"), copy.dir.join("trace.bin")).expect("moved");
    copy.refused(&["says that trace.bin is trace.bin, but the folder has a trace.bin, too: remove one"]);
}
