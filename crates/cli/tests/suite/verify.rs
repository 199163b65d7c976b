//! `kontig oracle verify`: its output, and exit codes 0 equal, 3
//! different, 2 invalid arguments or input.

use crate::common::{changed, kontig, tmp};
use serde_json::Value;
use std::path::{Path, PathBuf};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle/golden");

/// A folder with the smallest golden recording in `parent/name`.
fn copy(parent: &Path, name: &str) -> PathBuf {
    let dir = parent.join(name);
    std::fs::create_dir_all(&dir).unwrap();
    for entry in std::fs::read_dir(Path::new(GOLDEN).join("6.1-direct-unmovable")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.join(path.file_name().unwrap())).unwrap();
    }
    dir
}

/// A copy in which the kernel returned frame 0 for every request.
fn altered(parent: &Path, name: &str) {
    let dir = copy(parent, name);
    std::fs::remove_file(dir.join("res.bin.xz")).unwrap();
    std::fs::write(dir.join("res.bin"), [0; 4 * 4000]).unwrap();
}

/// Exit code, standard output and standard error.
fn verify(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output = kontig(dir, &[&["oracle", "verify"], args].concat()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_recording_that_is_reproduced_is_one_line_of_what_was_compared() {
    let d = tmp();
    copy(d.path(), "6.1-x");
    let (code, out, err) = verify(d.path(), &["6.1-x"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "6.1-x: equal: 4,000 operations, 749 pfns, 12 counters, final state with 112 blocks in 21 lists\n");
}

#[test]
fn without_a_name_the_newest_recording_is_verified() {
    let d = tmp();
    copy(d.path(), "recordings/6.1-old");
    std::thread::sleep(std::time::Duration::from_millis(20));
    copy(d.path(), "recordings/6.1-new");
    let (code, out, _) = verify(d.path(), &[]);
    assert!(code == 0 && out.starts_with("recordings/6.1-new: equal: ") && out.lines().count() == 1, "{out}");
    let (code, out, _) = verify(d.path(), &["all"]);
    assert!(code == 0 && out.lines().count() == 2, "{out}");
}

#[test]
fn where_there_is_no_recording_one_line_says_where_they_would_be() {
    let d = tmp();
    for (args, says) in [(&[][..], "no recordings under recordings/"), (&["all"][..], "oracle/golden/ or recordings/")]
    {
        let (code, out, err) = verify(d.path(), args);
        assert!(code == 2 && out.is_empty() && err.lines().count() == 1 && err.contains(says), "{err}");
    }
}

#[test]
fn a_difference_is_reported_with_its_surroundings_and_the_others_are_verified_all_the_same() {
    let d = tmp();
    altered(d.path(), "6.1-different");
    copy(d.path(), "6.1-equal");
    let (code, out, err) = verify(d.path(), &["6.1-different", "6.1-equal"]);
    assert_eq!((code, err.as_str()), (3, ""), "{out}");
    assert!(out.starts_with("6.1-different: DIFFERENT at operation 0: alloc of order 9 "), "{out}");
    for part in ["  the kernel: ", "  the engine: ", "  the engine's zone before it:", "\n6.1-equal: equal: "] {
        assert!(out.contains(part), "no '{part}' in:\n{out}");
    }
}

#[test]
fn verdicts_are_one_json_document() {
    let d = tmp();
    altered(d.path(), "6.1-different");
    copy(d.path(), "6.1-equal");
    let (code, out, _) = verify(d.path(), &["6.1-different", "6.1-equal", "--json"]);
    let doc: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &doc["schema"]), (3, &Value::from("kontig.verify/1")));
    let [different, equal] = &doc["recordings"].as_array().unwrap()[..] else { panic!("{out}") };
    assert_eq!((&different["verdict"], &equal["verdict"]), (&"different".into(), &"equal".into()));
    assert!(different["difference"]["at"].as_str().unwrap().starts_with("operation 0"), "{out}");
    assert_eq!(equal["compared"]["operations"], 4000);
}

#[test]
fn a_recording_of_a_kernel_without_profile_is_replayed_by_one_that_is_named() {
    let d = tmp();
    let about = copy(d.path(), "9.9-x").join("recording.toml");
    let text = std::fs::read_to_string(&about).unwrap();
    std::fs::write(about, changed(&text, &[("series = \"6.1\"", "series = \"9.9\"")])).unwrap();
    let (code, out, _) = verify(d.path(), &["9.9-x", "--profile", "6.1"]);
    assert!(code == 0 && out.starts_with("9.9-x: equal: 4,000 operations"), "{out}");
    let mine = "name = \"mine\"\nsummary = \"mine\"\nbase = \"6.1\"\n[slow_path]\ncompact_stall = \"always\"\n";
    std::fs::write(d.path().join("mine.toml"), mine).unwrap();
    let (code, out, _) = verify(d.path(), &["9.9-x", "--profile", "mine.toml"]);
    assert!(code == 3 && out.starts_with("9.9-x: DIFFERENT at "), "{out}");
    let (code, _, err) = verify(d.path(), &["9.9-x", "--profile", "7.2"]);
    assert!(code == 2 && err.ends_with("the PCP lines are of another kernel than profile '7.2'\n"), "{err}");
    let (code, _, err) = verify(d.path(), &["9.9-x", "--profile", "9.9"]);
    assert!(code == 2 && err.lines().count() == 1 && err.contains("9.9"), "{err}");
}

#[test]
fn a_recording_of_another_patch_level_than_the_profile_states_says_so() {
    let d = tmp();
    let dir = copy(d.path(), "6.1-x");
    let about = std::fs::read_to_string(dir.join("recording.toml")).unwrap();
    std::fs::write(dir.join("recording.toml"), about.replace("6.1.192", "6.1.90")).unwrap();
    let (code, out, err) = verify(d.path(), &["6.1-x"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let said = "6.1-x: recorded on 6.1.90, and profile 6.1 states the rules of 6.1.192";
    assert_eq!(out.lines().nth(1), Some(said), "{out}");
    let (_, out, _) = verify(d.path(), &["6.1-x", "--json"]);
    let doc: Value = serde_json::from_str(&out).unwrap();
    let levels = &doc["recordings"][0]["other_patch_level"];
    assert_eq!((&levels["recorded"], &levels["stated"]), (&"6.1.90".into(), &"6.1.192".into()), "{out}");

    let own = "name = \"6.1.90\"\nsummary = \"older\"\nbase = \"6.1\"\nversion = \"6.1.90\"\n";
    std::fs::write(d.path().join("own.toml"), own).unwrap();
    let (code, out, _) = verify(d.path(), &["6.1-x", "--profile", "own.toml"]);
    assert!(code == 0 && out.lines().count() == 1, "{out}");
}

#[test]
fn a_folder_without_a_recording_is_one_line_and_exit_code_2() {
    let d = tmp();
    let one_line = |args: &[&str], says: &str| {
        let (code, out, err) = verify(d.path(), args);
        assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
        assert!(err.starts_with("kontig: ") && err.contains(says), "{err}");
    };
    one_line(&["nowhere"], "nowhere: no such recording");
    copy(d.path(), "oracle/golden/6.1-stress1");
    one_line(
        &["6.1-stress1"],
        "6.1-stress1: no such recording: No such file or directory: did you mean oracle/golden/6.1-stress1?",
    );
    one_line(&["oracle/golden/6.1-stres"], "did you mean oracle/golden/6.1-stress1?");
    let about = copy(d.path(), "9.9-foo").join("recording.toml");
    let text = std::fs::read_to_string(&about).unwrap();
    std::fs::write(about, changed(&text, &[("series = \"6.1\"", "series = \"9.9\"")])).unwrap();
    one_line(&["9.9-foo"], "9.9-foo: no profile for kernel 9.9; known: 3.13, 4.4, 5.0, 5.10, 6.1, ");
    let cut = copy(d.path(), "6.1-cut").join("res.bin.xz");
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    one_line(&["6.1-cut"], "res.bin.xz: the xz file is cut short");
}

#[test]
fn a_file_that_no_replay_needs_must_be_whole_all_the_same() {
    let d = tmp();
    let dir = copy(d.path(), "6.1-x");
    let bytes = std::fs::read(dir.join("f1.vmstat.xz")).unwrap();
    std::fs::write(dir.join("f1.buddyinfo.xz"), &bytes).unwrap();
    assert_eq!(verify(d.path(), &["6.1-x"]).0, 0);
    std::fs::write(dir.join("f1.buddyinfo.xz"), &bytes[..bytes.len() / 2]).unwrap();
    let (code, out, err) = verify(d.path(), &["6.1-x"]);
    let says = "kontig: 6.1-x/f1.buddyinfo.xz: the xz file is cut short\n";
    assert_eq!((code, out.as_str(), err.as_str()), (2, "", says));
}

#[test]
fn a_recording_without_a_folder_of_its_own_makes_the_one_of_all() {
    let d = tmp();
    let root = d.path().join("root");
    // The image says its version where a bzImage does; nothing can be built there.
    let release = "6.1.0-1-cloud-amd64";
    std::fs::create_dir_all(root.join("boot")).unwrap();
    std::fs::create_dir_all(root.join("usr/src").join(format!("linux-headers-{release}"))).unwrap();
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    let banner = format!("{release} (d@d) #1 SMP Debian 6.1.1-1 (2026-01-01)\0");
    image.splice(0x300..0x300 + banner.len(), banner.bytes());
    std::fs::write(root.join("boot").join(format!("vmlinuz-{release}")), image).unwrap();
    let output = kontig(d.path(), &["oracle", "record", "mixed", "--root", "root"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("make it first") && output.status.code() == Some(1), "{said}");
    assert!(d.path().join("recordings").is_dir(), "{said}");
}

#[test]
fn a_build_that_cannot_be_recorded_is_refused_in_a_line() {
    let d = tmp();
    let cases: [(&[&str], i32, &str); 4] = [
        (
            &["guest-build", "--sources", "no"],
            2,
            "--sources no: has no Makefile: name the top of an unpacked kernel 6.1",
        ),
        (&["guest-build", "--kernel", "5.10"], 2, "guest-build: a guest's disks are for kernel 6.1 and later"),
        (&["guest-anon", "--sources", "no"], 2, "guest-anon: builds nothing; leave --sources out"),
        (&["mixed", "--sources", "no"], 2, "mixed: builds nothing; leave --sources out"),
    ];
    for (args, code, says) in cases {
        let output = kontig(d.path(), &[&["oracle", "record"], args].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.trim_end()), (Some(code), format!("kontig: {says}").as_str()));
    }
    let output = kontig(d.path(), &["oracle", "guest", "--pattern", "tea"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("known are file, anon, fork, mixed, costs, swap-costs, bursts, build"), "{said}");
}
