//! Every mistake and every failure has one line that starts with `kontig: ` and names the place and
//! the remedy, and the documented exit code: 1 failed while running, 2 invalid arguments or input.

use crate::common::{
    ASKED_WRONGLY, DIFFERENT, DISK, EXPERIMENT, FAILED, TARGET, changed, experiment, files, kontig, machine, program,
    refused, refuses, tmp, write,
};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TINY: [&str; 4] = ["run", "watch", "--machine", "tiny-64m"];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&TINY, more].concat()
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let d = tmp();
    let dir = d.path();
    let mean = |name: &str| format!("did you mean '{name}'?");
    refused(dir, &["reproduce", "hugepage-latncy"], 2, &["experiment 'hugepage-latncy'", &mean("hugepage-latency")]);
    refused(dir, &["run", "hugeallok", "--machine", "tiny-64m"], 2, &["'hugeallok'", &mean("hugealloc")]);
    refused(dir, &["run", "watch", "--machine", "tiny-64"], 2, &["machine 'tiny-64'", &mean("tiny-64m")]);
    refused(dir, &tiny(&["--profile", "6.2"]), 2, &["profile '6.2'", "between 6.1 and 6.12"]);
    let twice = tiny(&["--profile", "5.9", "--switch", "proactive-compaction"]);
    refused(dir, &twice, 2, &["switch 'proactive-compaction'", "profile '5.9'"]);
    refused(dir, &tiny(&["--switch", "proactive"]), 2, &["switch 'proactive'", &mean("proactive-compaction")]);
    refused(
        dir,
        &tiny(&["--set", "vm.compaction_proactivness=3"]),
        2,
        &["sysctl 'vm.compaction_proactivness'", &mean("vm.compaction_proactiveness")],
    );
    refused(dir, &["run", "qqqqqqqqqqqqqqqqqqqqqq"], 2, &["known: ", "hugealloc"]);
    for (args, what) in [
        (&["run", ""][..], "workload or experiment"),
        (&["reproduce", ""], "experiment"),
        (&["run", "watch", "--machine", ""], "machine"),
        (&["profile", "show", ""], "profile"),
    ] {
        refused(dir, args, 2, &[&format!("kontig: the name of the {what} is empty; known: ")]);
    }
    refused(dir, &["bench", "1", "14"], ASKED_WRONGLY, &["there is no row '14'", "13a"]);
    refused(dir, &["bench", ""], ASKED_WRONGLY, &["there is no row ''", "13a"]);
    refused(dir, &["bench", "-1"], ASKED_WRONGLY, &["there is no row '-1'", "13a"]);
}

#[test]
fn a_setting_is_refused_for_the_reason_there_is() {
    let d = tmp();
    let dir = d.path();
    let set = |more: &[&str], says: &str| {
        let says = format!("kontig: {says}\n");
        refused(dir, &tiny(more), ASKED_WRONGLY, &[&says]);
    };
    set(
        &["--set", "vm.defrag_mode=1"],
        "vm.defrag_mode: profile '6.1' does not have it; Kontig has it since 6.15-posted",
    );
    set(
        &["--profile", "5.6", "--set", "compaction_proactiveness=1"],
        "vm.compaction_proactiveness: profile '5.6' does not have it; --switch proactive-compaction adds it, Kontig \
         has it since 5.9",
    );
    for (profile, says) in
        [("6.1", "what it does in profile '6.1' is not modelled"), ("5.6", "profile '5.6' does not have it")]
    {
        let says = format!("lru_gen.enabled: {says}; Kontig has it only in 6.12 and 7.2");
        set(&["--profile", profile, "--set", "lru_gen.enabled=1"], &says);
    }
    let more = ["--profile", "6.12", "--set", "lru_gen.enabled=8"];
    set(&more, "lru_gen.enabled: '8' is not a whole number from 0 to 7");
    let form = "write it as SYSCTL=VALUE, such as vm.compaction_proactiveness=60; several as 0,60 or 0..100:20";
    for text in ["vm.extfrag_threshold", "=5"] {
        set(&["--set", text], &format!("--set {text}: {form}"));
    }
    set(&["--set", "extfrag_threshold="], &format!("--set extfrag_threshold=: extfrag_threshold has no value: {form}"));
    for value in ["1001", "-1", "60%", "0x10", "1 2", "5.0", "4294967296"] {
        let says = format!("vm.extfrag_threshold: '{value}' is not a whole number from 0 to 1000");
        set(&["--set", &format!("extfrag_threshold={value}")], &says);
    }
    let twice = ["--set", "extfrag_threshold=1", "--set", "vm.extfrag_threshold=2"];
    set(&twice, "vm.extfrag_threshold is set twice, to '1' and to '2'");
    let range = "vm.watermark_scale_factor: '2000' is not a whole number from 1 to 1000";
    set(&["--profile", "5.6", "--set", "watermark_scale_factor=2000"], range);
    set(
        &["--set", "vm.compact_memory=1"],
        "vm.compact_memory starts a compaction and is no setting: run the workload 'compact'",
    );
}

#[test]
fn a_machine_file_of_the_users_is_not_replaced() {
    let d = tmp();
    write(d.path(), "my.toml", "# mine\n");
    let says = ["my.toml exists, and nothing is overwritten: name a file that does not"];
    refused(d.path(), &["bench", "translation", "--out", "my.toml"], ASKED_WRONGLY, &says);
    assert_eq!(std::fs::read_to_string(d.path().join("my.toml")).expect("a file"), "# mine\n");
}

#[test]
fn an_unknown_setting_is_found_out_before_anything_is_booted() {
    let d = tmp();
    // The frames of a terabyte take gigabytes, so a machine of that size
    // cannot boot with less than one.
    let refused = |args: &[&str], says| {
        let mut little = Command::new("sh");
        little.args(["-c", "ulimit -v 800000; exec \"$0\" \"$@\""]).arg(program()).args(args).current_dir(d.path());
        refuses(little.output().unwrap(), args, ASKED_WRONGLY, &[says]);
    };
    for what in ["hugepage-latency", "hugealloc"] {
        let args = ["run", what, "--machine", "xeon-1t", "--set", "vm.vfs_cache_pressure=1"];
        refused(&args, "unknown sysctl 'vm.vfs_cache_pressure'");
        let args = ["run", what, "--machine", "xeon-1t", "--profile", "6.1", "--set", "vm.defrag_mode=1"];
        refused(&args, "vm.defrag_mode: profile '6.1' does not have it");
    }
}

#[test]
fn a_name_of_several_lines_is_still_answered_in_one() {
    let d = tmp();
    refused(d.path(), &["run", "a\nb\rc\u{2028}d"], ASKED_WRONGLY, &["a\\nb\\rc"]);
    refused(d.path(), &tiny(&["--set", "vm.extfrag_threshold=1\n2"]), ASKED_WRONGLY, &["1\\n2"]);
}

#[test]
fn a_sysctl_out_of_range_names_the_range() {
    let d = tmp();
    let set = |assignment, says: &[&str]| refused(d.path(), &tiny(&["--set", assignment]), ASKED_WRONGLY, says);
    set("vm.compaction_proactiveness=101", &["vm.compaction_proactiveness", "'101'", "from 0 to 100"]);
    set("vm.compaction_proactiveness=-1", &["'-1'", "from 0 to 100"]);
    set("compaction_proactiveness=x", &["vm.compaction_proactiveness", "'x'", "from 0 to 100"]);
    set("vm.extfrag_threshold=1001", &["from 0 to 1000"]);
    set("vm.watermark_scale_factor=3001", &["from 1 to 3000"]);
    set("vm.min_free_kbytes=4294967296", &["vm.min_free_kbytes", "whole number"]);
    set("min_free_kbytes=65536", &["vm.min_free_kbytes = 65536 keeps all memory free: the machine has ", "set less"]);
}

#[test]
fn a_sysctl_its_profile_lacks_is_not_suggested_to_itself() {
    let d = tmp();
    let args = tiny(&["--profile", "5.6", "--set", "vm.compaction_proactiveness=20"]);
    refused(d.path(), &args, ASKED_WRONGLY, &["profile '5.6'", "--switch proactive-compaction"]);
}

#[test]
fn an_assignment_needs_a_name_and_a_value() {
    let d = tmp();
    for wrong in ["vm.extfrag_threshold", "=5", "vm.extfrag_threshold="] {
        refused(d.path(), &tiny(&["--set", wrong]), ASKED_WRONGLY, &[wrong, "SYSCTL=VALUE"]);
    }
}

#[test]
fn parameters_that_a_workload_lacks_or_values_that_they_do_not_take_are_refused() {
    let d = tmp();
    let said = |with: &str, says: &[&str]| refused(d.path(), &tiny(&["--with", with]), ASKED_WRONGLY, says);
    said("jobs", &["--with jobs: write it as KEY=VALUE"]);
    said("give_up_after=3", &["--with give_up_after: unknown parameter 'give_up_after'; the workload has "]);
    said("sceonds=3", &["unknown parameter 'sceonds': did you mean 'seconds'?"]);
    said(
        "measure.seconds=0",
        &["--with measure.seconds: seconds = 0: nothing is seen", "; it takes more than 0, up to 1,000,000,000"],
    );
    said("measure.seconds=many", &["'many' is not a number; it takes more than 0"]);
    said("holes=first,round", &["'round' is not a value of it; it takes first, last, random, spread"]);
    said("holes=first,first", &["--with holes: the value first is given twice"]);
    let args = ["run", "heap", "--machine", "tiny-64m", "--with", "size=2MiB,2048KiB"];
    refused(d.path(), &args, ASKED_WRONGLY, &["--with size: the value 2048KiB is given twice"]);
    said("holes=first,prepare.holes=last", &["prepare.holes is set twice"]);
    let args = ["run", "kbuild+hugealloc", "--with", "size=1GiB"];
    let says = ["several parameters are called 'size': choose unpack.size, measure.tar.size or measure.hugealloc.size"];
    refused(d.path(), &args, ASKED_WRONGLY, &says);
    refused(d.path(), &tiny(&["--repetitions", "10001"]), ASKED_WRONGLY, &["repetitions = 10001", "10000"]);
}

#[test]
fn an_empty_file_a_missing_recording_and_a_tree_that_nobody_unpacks_are_refused() {
    let d = tmp();
    let dir = d.path();
    let nothing = write(dir, "nothing.toml", "\n\n");
    for args in [&["run", &nothing][..], &["run", "watch", "--machine", &nothing]] {
        refused(dir, args, ASKED_WRONGLY, &["nothing.toml:1: there is nothing in it"]);
    }
    let unpacked = ["run", "kbuild", "--machine", "box-2g", "--with", "unpacked=true"];
    refused(dir, &unpacked, ASKED_WRONGLY, &["unpacked = true", "no step unpacks or copies tree 0", "leave it out"]);
    let again = ["oracle", "record", "direct-movable", "--again", "--out", "missing"];
    refused(dir, &again, ASKED_WRONGLY, &["--again: there is no recording missing", "--out"]);
    assert!(!dir.join("missing").exists());
    refused(dir, &["compare", "one"], ASKED_WRONGLY, &["name two results or more"]);
}

#[test]
fn a_machine_too_small_for_a_workload_to_do_anything_is_refused() {
    let d = tmp();
    let args = ["run", "backoff", "--machine", "tiny-64m"];
    refused(d.path(), &args, ASKED_WRONGLY, &["backoff: leave = \"8 GiB\"", "the machine has 63 MiB"]);
}

/// The limit is on address space: the program itself maps less, and a machine of 64 GiB takes 128
/// MiB in one array.
#[test]
fn a_host_without_memory_left_is_said_in_one_line() {
    let d = tmp();
    let program = assert_cmd::cargo::cargo_bin("kontig");
    let command = format!("ulimit -v 120000; exec {} run hugealloc --machine xeon-64g -j1", program.display());
    let output = std::process::Command::new("sh").current_dir(d.path()).args(["-c", &command]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("kontig: the host has no ") && stderr.contains("--machine"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn arguments_that_the_parser_refuses_have_the_same_exit_code() {
    let d = tmp();
    for args in [
        vec![],
        vec!["explode"],
        vec!["run"],
        vec!["run", "watch", "--jobs", "0"],
        vec!["run", "watch", "--seed", "-1"],
        vec!["run", "watch", "--repetitions", "0"],
        vec!["run", "watch", "--seed", "1,1"],
        vec!["run", "watch", "--seed", "5..1"],
        vec!["run", "watch", "--no-such-thing"],
        vec!["completions", "no-such-shell"],
    ] {
        kontig(d.path(), &args).assert().code(ASKED_WRONGLY).stdout("");
    }
}

#[test]
fn numbers_out_of_range_are_refused_with_the_option_and_the_range() {
    let positive = format!("a whole number from 1 to {}", u32::MAX);
    let seeds = format!("a whole number from 0 to {}, or several as 1,5,9 or 1..5", u64::MAX);
    for (option, value, range) in
        [("--jobs", "<N>", &positive), ("--repetitions", "<N>", &positive), ("--seed", "<SEEDS>", &seeds)]
    {
        for number in ["0", "-1", ""].into_iter().filter(|number| *number != "0" || !range.contains("from 0 to")) {
            let output = kontig(tmp().path(), &["run", "hugealloc", option, number]).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            let says = format!("error: invalid value '{number}' for '{option} {value}': expected {range}\n");
            assert!(output.status.code() == Some(ASKED_WRONGLY) && stderr.starts_with(&says), "{stderr}");
        }
    }
}

#[test]
fn a_number_that_a_key_does_not_take_is_told_with_its_key_and_those_it_takes() {
    let d = tmp();
    let dir = d.path();
    let jobs = |jobs: &str| {
        let task = format!("task = [{{ name = \"kbuild\", run = {{ jobs = {jobs} }} }}]");
        let text = format!("base = \"kbuild+hugealloc\"\nsummary = \"s\"\n[[phase]]\nname = \"measure\"\n{task}\n");
        write(dir, "load.toml", &text)
    };
    for number in ["-1", "9999999999", "99999999999999999999999"] {
        let file = jobs(number);
        let says = format!("kontig: ./load.toml:5: jobs = {number}: expected a whole number from 1 to 63\n");
        for args in [["run", &file], ["show", &file]] {
            let args = if args[0] == "show" { vec!["show", "workload", &file] } else { args.to_vec() };
            let output = kontig(dir, &args).output().unwrap();
            assert_eq!(
                (String::from_utf8(output.stderr).unwrap(), output.status.code()),
                (says.clone(), Some(ASKED_WRONGLY))
            );
        }
        let with = ["run", "kbuild+hugealloc", "--with", &format!("jobs={number}")];
        let wrong = if number == "-1" { "is negative" } else { "is more than 4294967295" };
        let says = format!("kontig: --with jobs: jobs = {number} {wrong}; it takes 1 to 63\n");
        kontig(dir, &with).assert().code(ASKED_WRONGLY).stderr(says);
    }
    let file = jobs("64");
    let says = "./load.toml:5: jobs = 64: as many compilers use 3798 MiB, and the machine has 3749 MiB: choose less; it \
                takes 1 to 63";
    refused(dir, &["show", "workload", &file], ASKED_WRONGLY, &[says]);
    refused(dir, &["run", &file], ASKED_WRONGLY, &[says]);
    let e = experiment(dir, &[("= 384", "= -384")]);
    let range = "./experiment.toml:8: freed_per_section = -384: expected a whole number from 0 to 512";
    refused(dir, &["show", "experiment", &e], ASKED_WRONGLY, &[range]);
    let m = machine(dir, &[("cpus = 2", "cpus = -2")]);
    refused(dir, &["show", "machine", &m], ASKED_WRONGLY, &[": cpus = -2: expected a whole number from 1 to 65535"]);
}

#[test]
fn a_malformed_file_is_named_with_its_line() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("repetitions = 2", "repetitions = = 2")]);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["kontig: ./experiment.toml:5: "]);
    let e = experiment(dir, &[("repetitions = 2", "repetitions = -2")]);
    let range = ":5: repetitions = -2: expected a whole number from 1 to 10000";
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &[range]);
    let e = experiment(dir, &[("holes = \"random\"", "holes = \"round\"")]);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["kontig: ./experiment.toml:", "round", "spread"]);
    let m = machine(dir, &[("cpus = 2", "cpus = \"two\"")]);
    refused(dir, &["run", "watch", "--machine", &m], ASKED_WRONGLY, &["kontig: ./machine.toml:", "two"]);
    let p = write(dir, "profile.toml", "name = \"x\"\nsummary = \"\"\n");
    refused(dir, &tiny(&["--profile", &p]), ASKED_WRONGLY, &["./profile.toml:2: summary is empty: give it a text"]);
    let p = write(dir, "profile.toml", "name = \"x\"\nsummary = 1\n");
    refused(dir, &tiny(&["--profile", &p]), ASKED_WRONGLY, &["kontig: ./profile.toml:2: "]);
    std::fs::write(dir.join("bytes.toml"), [0xff, 0xfe]).unwrap();
    refused(dir, &["reproduce", "./bytes.toml"], ASKED_WRONGLY, &["./bytes.toml:1: this is no text"]);
    std::fs::write(dir.join("bytes.toml"), b"id = 'x'\nsummary = '\xff'\n").unwrap();
    refused(dir, &["reproduce", "./bytes.toml"], ASKED_WRONGLY, &["./bytes.toml:2: this is no text"]);
    std::fs::write(dir.join("long.toml"), vec![b'#'; (64 << 20) + 1]).unwrap();
    refused(
        dir,
        &["reproduce", "./long.toml"],
        ASKED_WRONGLY,
        &["./long.toml: cannot be read: it is longer than 64 MiB"],
    );
    refused(dir, &tiny(&["--profile", "./bytes.toml"]), ASKED_WRONGLY, &["./bytes.toml:2: this is no text"]);
    refused(dir, &tiny(&["--profile", "./long.toml"]), ASKED_WRONGLY, &["./long.toml: cannot be read: it is longer"]);
    refused(dir, &["reproduce", "./none.toml"], ASKED_WRONGLY, &["./none.toml: cannot be read", "No such file"]);
}

#[test]
fn errors_in_a_machine_with_anothers_costs_have_their_line() {
    let d = tmp();
    let dir = d.path();
    let machine = include_str!("../../../../machines/box-2g.toml").replace("name = \"box-2g\"", "name = \"mine\"");
    let named = machine.find("base = ").expect("its costs are another's");
    assert!(machine[..named].contains("[costs]"));
    for (right, wrong, place, says) in [
        ("read_mb_s = 2000\n", "", "[[disk]]", "missing field 'read_mb_s'"),
        ("cpus = 8", "cpus = \"eight\"", "cpus = 8", "\"eight\""),
    ] {
        let line = machine[..machine.find(place).expect("it is there")].lines().count() + 1;
        let m = write(dir, "m.toml", &machine.replacen(right, wrong, 1));
        refused(dir, &["run", "watch", "--machine", &m], ASKED_WRONGLY, &[&format!("./m.toml:{line}: "), says]);
    }
}

#[test]
fn unknown_fields_are_named() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("repetitions", "repetitons")]);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["./experiment.toml:5: ", "'repetitons'", "'repetitions'"]);
    let e = experiment(dir, &[("settle_s", "rest_s")]);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["./experiment.toml:9: unknown key 'rest_s'", "settle_s"]);
    let m = machine(dir, &[("thp =", "thps =")]);
    refused(
        dir,
        &["run", "watch", "--machine", &m],
        ASKED_WRONGLY,
        &["./machine.toml:", "'thps': did you mean 'thp'?"],
    );
}

#[test]
fn an_experiment_that_contradicts_itself_is_refused() {
    let d = tmp();
    let dir = d.path();
    let contradiction = |from: &str, to: &str, line: usize, says: &[&str]| {
        let e = experiment(dir, &[(from, to)]);
        let place = format!("kontig: ./experiment.toml:{line}: ");
        let says = [&[place.as_str()], says].concat();
        refused(dir, &["reproduce", &e], ASKED_WRONGLY, &says);
    };
    contradiction("patched, 60", "vanilla", 17, &["two variants are called 'vanilla'"]);
    let both = "\"vm.compaction_proactiveness\" = 60, compaction_proactiveness = 20";
    let twice = "variant 'patched, 60' sets vm.compaction_proactiveness twice";
    contradiction("\"vm.compaction_proactiveness\" = 60", both, 20, &[twice]);
    contradiction("\"patched, 60\"", "\"..\"", 17, &["a variant cannot be called '..'"]);
    contradiction("\"small\"", "\"../small\"", 1, &["id = \"../small\""]);
    contradiction("repetitions = 2", "repetitions = 0", 5, &["repetitions = 0"]);
    contradiction("repetitions = 2", "repetitions = 4000000000", 5, &["repetitions = 4000000000", "at most"]);
    contradiction("= 384", "= 513", 8, &["freed_per_section = 513", "512"]);
    for (written, said) in [("-1", "settle_s = -1"), ("nan", "settle_s = NaN")] {
        let e = experiment(dir, &[("settle_s = 1", &format!("settle_s = {written}"))]);
        refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["kontig: ./experiment.toml:9: ", said]);
    }
    contradiction("GFP_KERNEL", "GFP_COLONEL", 10, &["GFP_COLONEL", "GFP_KERNEL"]);
    contradiction("\"GFP_KERNEL\"", "\"GFP_KERNEL\", pause_us = 1e300", 10, &["pause_us"]);
    let pace = "[pace]\nmachine = \"tiny-64m\"\npause_us = [0, -1]\n\n[[variant]]";
    contradiction("[[variant]]", pace, 14, &["pause_us = -1"]);
    contradiction("[[variant]]", &pace.replace("-1", "0"), 14, &["pause_us", "twice"]);

    let stored_alike = [("\"vanilla\"", "\"a b\""), ("\"patched, 60\"", "\"a_b\"")];
    let e = experiment(dir, &stored_alike);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["'a b' and 'a_b'", "one name"]);
    let none = EXPERIMENT.split("[[variant]]").next().unwrap().replacen("id =", "variant = []\nid =", 1);
    let e = write(dir, "none.toml", &none);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["./none.toml:1: ", "at least one"]);
}

#[test]
fn a_name_in_an_experiment_that_nothing_has_is_answered_with_its_line_and_the_nearest() {
    let d = tmp();
    let dir = d.path();
    let named = |from: &str, to: &str, line: usize, nearest: &str| {
        let e = experiment(dir, &[(from, to)]);
        let place = format!("./experiment.toml:{line}: ");
        refused(dir, &["reproduce", &e], ASKED_WRONGLY, &[&place, nearest]);
        refused(dir, &["run", &e], ASKED_WRONGLY, &[&place, nearest]);
    };
    named("tiny-64m", "tiny-65m", 4, "tiny-64m");
    named("\"5.6\"", "\"5.66\"", 14, "between 5.10 and 6.1");
    named("[\"proactive-compaction\"]", "[\"proactive-compaktion\"]", 19, "proactive-compaction");
    named("\"vm.compaction_proactiveness\"", "compaction_proactivenes", 20, "vm.compaction_proactiveness");
    named("repetitions = 2", "target = \"java-heep\"", 5, "java-heap");
    named("\"fragment\"", "\"fragmint\"", 8, "fragment");
    named("freed_per_section", "freed_per_sektion", 8, "freed_per_section");
    let pace = "[pace]\nmachine = \"tiny64m\"\npause_us = [0]\n\n[[variant]]";
    named("[[variant]]", pace, 13, "tiny-64m");
}

#[test]
fn a_file_does_not_take_the_name_of_a_built_in_one() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("\"small\"", "\"backoff\"")]);
    let says = "./experiment.toml:1: 'backoff' is a built-in experiment: change the id";
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &[says]);
    let m = machine(dir, &[("\"mine-64m\"", "\"xeon-64g\"")]);
    let says = ["./machine.toml:", "'xeon-64g' is a built-in machine: change the name"];
    refused(dir, &["run", "watch", "--machine", &m], ASKED_WRONGLY, &says);
    let p = write(dir, "p.toml", "name = \"6.1\"\nsummary = \"mine\"\nbase = \"6.1\"\n");
    refused(
        dir,
        &tiny(&["--profile", &p]),
        ASKED_WRONGLY,
        &["./p.toml:1: '6.1' is a built-in profile: change the name"],
    );
    let p = write(dir, "p.toml", "name = \"x\"\nsummary = \"mine\"\nbase = \"6.1\"\nrecorded = true\n");
    refused(dir, &tiny(&["--profile", &p]), ASKED_WRONGLY, &["./p.toml:4: recorded = true is for built-in profiles"]);
    let copy = write(dir, "copy.toml", include_str!("../../../../machines/tiny-64m.toml"));
    kontig(dir, &["run", "watch", "--machine", &copy]).assert().success().stderr("");
}

#[test]
fn a_path_in_an_experiment_starts_from_the_experiments_own_folder() {
    let d = tmp();
    let dir = d.path();
    let mine = dir.join("mine");
    std::fs::create_dir(&mine).unwrap();
    write(&mine, "p.toml", "name = \"x\"\nsummary = \"mine\"\nbase = \"5.6\"\n");
    write(&mine, "t.toml", TARGET);
    machine(&mine, &[]);
    let text = [("\"5.6\"", "\"p.toml\""), ("\"tiny-64m\"", "\"./machine.toml\"\ntarget = \"t.toml\"")];
    experiment(&mine, &text);
    kontig(dir, &["reproduce", "mine/experiment.toml", "--out", "kept"]).assert().success().stderr("");
    kontig(dir, &["rerun", "kept"]).assert().success().stderr("");
    std::fs::remove_file(mine.join("p.toml")).unwrap();
    let says = ["kontig: mine/experiment.toml:15: mine/p.toml: cannot be read"];
    refused(dir, &["reproduce", "mine/experiment.toml"], ASKED_WRONGLY, &says);
}

#[test]
fn a_target_that_does_not_fit_is_refused() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("repetitions = 2", "target = \"./target.toml\"")]);
    write(dir, "target.toml", &changed(TARGET, &[("\"a\", \"b\"", "\"a\""), ("100.0, ", "")]));
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["./experiment.toml:5: 2 variants", "small-target has 1"]);
    write(dir, "target.toml", &changed(TARGET, &[("100.0, ", "")]));
    let says = ["./target.toml:8: ", "'hugepage alloc latency p50' has 1 values for 2 variants"];
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &says);
    let e = experiment(dir, &[("repetitions = 2", "target = \"hugepage-latenzy\"")]);
    refused(dir, &["reproduce", &e], ASKED_WRONGLY, &["target", "did you mean 'hugepage-latency'?"]);
}

/// Before anything runs: such a row would be a miss after the last run.
#[test]
fn a_target_of_what_no_run_measures_is_refused_with_the_nearest_name() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("repetitions = 2", "repetitions = 2\ntarget = \"./target.toml\"")]);
    let row = "name = \"hugepage alloc latency p50\"\nunit = \"us\"";
    write(dir, "target.toml", TARGET);
    kontig(dir, &["reproduce", &e]).assert().success();
    for (to, says) in [
        (
            "name = \"hugepage aloc latency p50\"\nunit = \"us\"",
            "./target.toml:5: row 'hugepage aloc latency p50': unknown figure 'hugepage aloc latency p50': did you mean \
             'hugepage alloc latency p50'?",
        ),
        (
            "name = \"x\"\nof = \"hugepage alloc latenzy\"\nstat = \"p90\"\nunit = \"us\"",
            "./target.toml:6: row 'x': unknown figure 'hugepage alloc latenzy': did you mean 'hugepage alloc latency'?",
        ),
        (
            "name = \"x\"\nunit = \"s\"\nof = \"elapsed\"\nphase = \"prepares\"",
            "./target.toml:8: row 'x': unknown phase 'prepares': did you mean 'prepare'?",
        ),
        (
            "name = \"x\"\nunit = \"s\"\nformula = \"2 * [elapsd] + [system, total]\"",
            "./target.toml:7: row 'x': unknown figure 'elapsd': did you mean 'elapsed'?",
        ),
        (
            "name = \"x\"\nunit = \"pages\"\nof = \"elapsed\"",
            "./target.toml:6: row 'x': elapsed is in s, which is not pages",
        ),
        (
            "name = \"requests of the database\"\nunit = \"s\"",
            "./target.toml:5: row 'requests of the database': no run has a figure 'requests of the database': 'kontig \
             run … --all-figures' prints all",
        ),
    ] {
        write(dir, "target.toml", &changed(TARGET, &[(row, to)]));
        refused(dir, &["reproduce", &e, "--out", "r"], ASKED_WRONGLY, &[&format!("kontig: {says}\n")]);
        assert!(!dir.join("r").exists());
    }
}

#[test]
fn a_machine_that_cannot_be_is_refused() {
    let d = tmp();
    let dir = d.path();
    // The tiny machine's zone begins in line 8, and has its keys in the lines after it.
    let contradiction = |replace: &[(&str, &str)], line: u32, says: &str| {
        let m = machine(dir, replace);
        let at = format!("kontig: ./machine.toml:{line}: ");
        refused(dir, &["run", "watch", "--machine", &m], ASKED_WRONGLY, &[&at, says]);
    };
    contradiction(&[("\"1 MiB\"", "\"65 MiB\"")], 13, "zone DMA32 of node 0: more is reserved than there is");
    contradiction(&[("\"80 MiB\"", "\"8 MiB\"")], 13, "zone DMA32 of node 0: more is reserved than there is");
    contradiction(&[("\"80 MiB\"", "\"17 MiB\"")], 8, "node 0 zone DMA32: pfns 4096 to 4352 are not whole pageblocks");
    contradiction(&[("\"80 MiB\"", "\"80 MB\"")], 12, "end = \"80 MB\" is not a size");
    contradiction(&[("\"80 MiB\"", "\"17 TiB\"")], 12, "end = \"17 TiB\" is beyond 16 TiB");
    contradiction(&[("\"80 MiB\"", "\"8 GiB\"")], 12, "end = \"8 GiB\": such a zone ends at 4 GiB at the latest");
    contradiction(&[("DMA32", "HighMem")], 10, "kind must be DMA, DMA32 or Normal");
    contradiction(&[("cpus = 2", "cpus = 0")], 3, "CPUs, not 0");
    contradiction(&[("cpus = 2", "cpus = 2\nthreads_per_core = 3")], 4, "no whole number of cores");
    contradiction(&[("node = 0", "node = 64")], 8, "nodes are numbered 0 to 63, not 64");
    let zone = |node: u32, start: &str, end: &str| {
        let kind = if node == 0 { "DMA" } else { "Normal" };
        format!(
            "[[zone]]\nnode = {node}\nkind = \"{kind}\"\nstart = \"{start}\"\nend = \"{end}\"\nreserved = \"0\"\n\
                source = \"\"\n\n"
        )
    };
    let overlapping = zone(0, "0", "16 MiB") + "[[zone]]";
    contradiction(
        &[("[[zone]]", &overlapping), ("\"16 MiB\"\nend = \"80", "\"8 MiB\"\nend = \"80")],
        16,
        "inside the zone before it",
    );
    let after = "source = \"chosen: 32 pageblocks\"\n";
    let gap = format!("{after}\n{}", zone(2, "4 GiB", "4160 MiB"));
    contradiction(&[(after, &gap)], 17, "without a gap: there is no zone of node 1");
    let two = format!("{after}\n{}", zone(1, "4 GiB", "4160 MiB"));
    let numa = |distances: &str, ns: &str| {
        let cost = |ns: &str| format!("{{ ns = {ns}, source = \"a test\" }}");
        let (touch, page) = (cost(ns), cost("100"));
        format!("{two}[numa]\ndistances = {distances}\nsource = \"a test\"\ntouch = {touch}\npage = {page}\n")
    };
    for (distances, says) in [
        ("[[10, 21]]", "there are distances of 1 nodes, and the machine has 2: a row for each"),
        ("[[10, 21], [21]]", "node 1 has 1 distances, and the machine 2 nodes: one to each"),
        ("[[10, 21], [21, 12]]", "node 1 is 12 from itself: a node is 10 from itself"),
        ("[[10, 10], [21, 10]]", "node 1 is 10 from node 0: another node is further than 10"),
    ] {
        contradiction(&[(after, &numa(distances, "50"))], 25, says);
    }
    contradiction(&[(after, &numa("[[10, 21], [21, 10]]", "-1"))], 27, "cost touch = -1 ns is not from 0");

    let m = machine(dir, &[("\"xeon-1t\"", "\"nonexistent\"")]);
    refused(dir, &["run", "watch", "--machine", &m], ASKED_WRONGLY, &["machine 'nonexistent'", "xeon-1t"]);
    let costs = include_str!("../../../../machines/xeon-1t.toml").split_once("[costs]").unwrap().1;
    for wrong in ["inf", "nan", "-1"] {
        let (_, after) = costs.split_once(',').unwrap();
        let costs = format!("source = \"chosen: 32 pageblocks\"\n\n[costs]\nzones_tried = {{ ns = {wrong},{after}");
        let replace = [("costs = \"xeon-1t\"", ""), ("source = \"chosen: 32 pageblocks\"", costs.as_str())];
        contradiction(&replace, 17, "cost zones_tried");
    }
}

/// A process that fills memory and writes a file beside an existing one.
const PRESSED: &str = r#"id = "pressed"
summary = "Memory and a file"
assumptions = "None."
machine = "machine.toml"

[[workload.phase]]
name = "measure"
measured = true

[[workload.phase.task]]
memory = { bind = [0] }

[workload.phase.task.run]
kind = "steps"
files = [{ file = 1, size = "512 MiB" }]
steps = [
    { do = "fill", size = "16 MiB", as = "filling" },
    { do = "write", file = 2, size = "64 MiB" },
]

[[variant]]
name = "the one"
profile = "4.6"
sysctls = { "thp.defrag" = "defer" }
"#;

#[test]
fn a_disk_that_cannot_be_is_refused_before_anything_runs() {
    let d = tmp();
    let source = "source = \"chosen: 32 pageblocks\"\n";
    // The disk begins in line 16 of the file.
    for (from, to, line, says) in [
        ("read_mb_s = 400", "read_mb_s = 0", 21, "disk sda: read_mb_s = 0: a disk needs more"),
        ("write_mb_s = 400", "write_mb_s = -1", 22, "disk sda: write_mb_s = -1: a disk needs more"),
        ("disk = \"sda\"", "disk = \"sdb\"", 30, "swap on disk 'sdb', which is not there: there is sda"),
        ("\"64 MiB\"", "\"2 GiB\"", 31, "swap of 2 GiB leaves no room for files on disk sda, of 1 GiB"),
    ] {
        let m = machine(d.path(), &[(source, &changed(DISK, &[(from, to)]))]);
        let at = format!("kontig: ./machine.toml:{line}: ");
        refused(d.path(), &["run", "watch", "--machine", &m], ASKED_WRONGLY, &[&at, says]);
    }
    let swap = "\n[swap]\ndisk = \"sda\"\nsize = \"1 GiB\"\n";
    let m = machine(d.path(), &[(source, &format!("{source}{swap}"))]);
    let says = ["./machine.toml:17: ", "swap on disk 'sda', which is not there: this machine has none"];
    refused(d.path(), &["run", "watch", "--machine", &m], ASKED_WRONGLY, &says);
}

#[test]
fn a_workload_that_cannot_fit_is_refused_before_anything_runs() {
    let d = tmp();
    machine(d.path(), &[("source = \"chosen: 32 pageblocks\"\n", DISK)]);
    let file = write(d.path(), "pressed.toml", PRESSED);
    kontig(d.path(), &["run", &file]).assert().success();
    for (from, to, line, says) in [
        // 63 MiB of memory and 64 of swap.
        ("\"16 MiB\"", "\"128 MiB\"", 16, "step 1: 128 MiB are filled by then, and the machine has 127 MiB"),
        ("\"512 MiB\"", "\"2 GiB\"", 15, "file 1 of disk 0 is 2048 MiB, and its disk has room for 960 MiB"),
        ("\"64 MiB\"", "\"512 MiB\"", 16, "512 MiB are written to disk 0, which has room for 448 MiB"),
        ("bind = [0]", "bind = [1]", 11, "memory policy names node 1, and the machine has node 0 alone: choose one"),
        ("bind = [0]", "bind = []", 11, "memory names no node: bind = [0]"),
        ("\"defer\"", "\"defer+madvise\"", 24, "thp.defrag: profile '4.6' does not have 'defer+madvise', only "),
        ("\"defer\"", "\"often\"", 24, "thp.defrag: 'often' is none of "),
    ] {
        let file = write(d.path(), "wrong.toml", &changed(PRESSED, &[(from, to)]));
        let at = format!("kontig: ./wrong.toml:{line}: ");
        refused(d.path(), &["run", &file, "--out", "kept"], ASKED_WRONGLY, &[&at, says]);
        assert!(!d.path().join("kept").exists(), "nothing was begun");
    }
}

#[test]
fn a_profile_that_cannot_be_is_refused_with_its_line() {
    let d = tmp();
    for (lines, said) in [
        ("base = \"6.1\"\n[watermark]\nmin_free_kbytes_cap = 2\n", "./p.toml:5: min_free_kbytes_cap = 2: at least 128"),
        ("base = \"6.11\"\n", "./p.toml:3: unknown base '6.11': it is between 6.1 and 6.12"),
        ("base = \"q.toml\"\n", "./q.toml:3: base 'p.toml' leads back to ./p.toml: a profile is not its own base"),
        ("base = \"none.toml\"\n", "./p.toml:3: base: ./none.toml: cannot be read"),
        ("[boot]\nfrees_to_tail = true\n", "./p.toml:1: rule boot.forgets_raised_min_free is missing"),
    ] {
        let p = write(d.path(), "p.toml", &format!("name = \"x\"\nsummary = \"mine\"\n{lines}"));
        write(d.path(), "q.toml", "name = \"y\"\nsummary = \"its\"\nbase = \"p.toml\"\n");
        refused(d.path(), &tiny(&["--profile", &p]), ASKED_WRONGLY, &[said]);
    }
}

#[test]
fn a_machine_larger_than_the_host_says_what_it_needs() {
    let available = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kib = available.lines().find_map(|l| l.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok());
    if kib.is_none_or(|kib: u64| kib > 26 << 20) {
        return; // this host could do it
    }
    let d = tmp();
    let m = machine(d.path(), &[("DMA32", "Normal"), ("\"16 MiB\"", "\"0\""), ("\"80 MiB\"", "\"8191 GiB\"")]);
    let begin = Instant::now();
    refused(
        d.path(),
        &["run", "watch", "--machine", &m, "--out", "kept"],
        FAILED,
        &["mine-64m", "needs ", " GiB of memory", "--machine"],
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(!d.path().join("kept").exists(), "nothing was begun");
}

#[test]
fn where_memory_ends_the_remedy_is_one_that_the_command_has() {
    let d = tmp();
    for args in [
        &["bench", "10"][..],
        &["bench", "10", "--full"],
        &["run", "watch", "--machine", "desktop-32g"],
        &["reproduce", "compact-32g"],
    ] {
        // The host has plenty, but the program is limited to 100 MB.
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -v 100000; exec \"$0\" \"$@\""]).arg(program()).args(args);
        let output = limited.current_dir(d.path()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(FAILED), 1), "{args:?}: {stderr}");
        let (_, remedy) = stderr.split_once(" KiB of memory left: ").unwrap_or_else(|| panic!("{args:?}: {stderr}"));
        let help = kontig(d.path(), &[args[0], "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let options = remedy.split([' ', ',', '\n']).filter(|word| word.starts_with('-'));
        for option in options {
            assert!(help.contains(&format!("{option} ")) || help.contains(&format!("{option},")), "{option}: {help}");
        }
    }
}

/// Tests may run as root, whom permissions do not stop; but nobody can write below a regular file.
#[test]
fn a_place_that_cannot_be_written_is_found_out_before_anything_runs() {
    let d = tmp();
    let dir = d.path();
    write(dir, "file", "as it was");
    // The run itself would take hours.
    let e = experiment(dir, &[("measure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL\" }", LONG_WATCH)]);
    for option in ["--out", "--html", "--svg", "--procfs"] {
        refused(dir, &["reproduce", &e, option, "file/below"], FAILED, &["file/below", "cannot be written"]);
    }
    for option in ["--html", "--svg"] {
        refused(dir, &["reproduce", &e, option, "."], FAILED, &["cannot be written", "directory"]);
    }
    refused(dir, &["man", "file/below"], FAILED, &["file/below: cannot be written"]);
    refused(dir, &["man", "file"], FAILED, &["kontig: file: cannot be written: this is no directory\n"]);
    let device = ["reproduce", &e, "--out", "/dev/full"];
    refused(dir, &device, FAILED, &["kontig: /dev/full: cannot be written: this is no directory\n"]);
    let why = "new/below: cannot be written: there is no directory new: make it first";
    for args in [&["reproduce", &e, "--out"][..], &["reproduce", &e, "--procfs"], &["man"]] {
        refused(dir, &[args, &["new/below"]].concat(), FAILED, &[why]);
    }
    refused(dir, &["reproduce", &e, "--mmtests", "new/below"], FAILED, &[why]);
    assert!(!dir.join("new").exists());
    assert_eq!(std::fs::read_to_string(dir.join("file")).unwrap(), "as it was");
}

#[test]
fn two_outputs_in_one_place_are_refused() {
    let d = tmp();
    let dir = d.path();
    for (one, other) in [
        ("--html", "--svg"),
        ("--html", "--out"),
        ("--html", "--procfs"),
        ("--svg", "--mmtests"),
        ("--html", "--trace"),
    ] {
        let says = format!("kontig: {one} and {other} both name ./x: give each a place of its own\n");
        refused(dir, &tiny(&[one, "x", other, "./x"]), ASKED_WRONGLY, &[&says]);
    }
    assert!(files(dir).is_empty());
    kontig(dir, &tiny(&["--html", "/dev/null", "--svg", "/dev/null"])).assert().success();
}

#[test]
fn an_output_never_replaces_a_file_that_is_read() {
    let d = tmp();
    let machine = machine(d.path(), &[]);
    let before = std::fs::read_to_string(d.path().join(&machine)).unwrap();
    let args = ["run", "watch", "--machine", &machine, "--profile", "6.1", "--html", &machine];
    refused(d.path(), &args, ASKED_WRONGLY, &["--html would replace ", "which is read: name another file"]);
    assert_eq!(std::fs::read_to_string(d.path().join(&machine)).unwrap(), before);
}

#[test]
fn a_question_refused_leaves_what_was_there() {
    let d = tmp();
    write(d.path(), "page.html", "an earlier page");
    let args = tiny(&["--html", "page.html", "--out", "kept", "--set", "vm.extfrag_threshold=2000"]);
    refused(d.path(), &args, ASKED_WRONGLY, &["vm.extfrag_threshold"]);
    assert_eq!(std::fs::read_to_string(d.path().join("page.html")).unwrap(), "an earlier page");
    assert!(!d.path().join("kept").exists());
}

#[test]
fn a_full_disk_is_said() {
    let d = tmp();
    let output = kontig(d.path(), &tiny(&["--html", "/dev/full"])).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(FAILED));
    assert!(stderr.starts_with("kontig: /dev/full: cannot be written: No space left"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
    use std::os::unix::fs::FileTypeExt;
    assert!(Path::new("/dev/full").metadata().unwrap().file_type().is_char_device(), "a device stays a device");

    // The same for standard output, since half a document is useless.
    for args in [tiny(&["--json"]), tiny(&[]), vec!["list"], vec!["list", "--json"], vec!["completions", "bash"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(program()).args(&args).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(FAILED), "{args:?}");
        assert!(stderr.starts_with("kontig: standard output: cannot be written: No space left"), "{stderr}");
    }
    // If even the error cannot be printed, only the exit code is left.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(program()).args(["run", "nothing-such"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(ASKED_WRONGLY));
}

#[test]
fn an_experiment_is_not_run_twice() {
    let d = tmp();
    let e = experiment(d.path(), &[]);
    refused(d.path(), &["reproduce", &e, &e], ASKED_WRONGLY, &["'small'", "twice"]);
    refused(d.path(), &["reproduce", "backoff", "backoff"], ASKED_WRONGLY, &["'backoff'", "twice"]);
}

#[test]
fn a_result_that_is_none_cannot_be_rerun() {
    let d = tmp();
    let dir = d.path();
    refused(dir, &["rerun", "missing"], FAILED, &["missing", "no result can be read here"]);
    refused(dir, &["rerun", "."], FAILED, &["./result.json", "No such file"]);
    for (text, says) in [
        ("", "not a result"),
        ("hello", "not a result"),
        ("[]", "names no schema"),
        ("{}", "names no schema"),
        (r#"{"schema": 1}"#, "names no schema"),
        (
            r#"{"schema": "kontig.result/1"}"#,
            "written by another version of kontig: schema kontig.result/1, and this one reads kontig.result/7: run it \
             again, or use the build that wrote it",
        ),
        (r#"{"schema": "kontig.result/7"}"#, "written by another build of kontig than this one (0.1.0), or changed"),
        (
            r#"{"schema": "kontig.reproduce/1"}"#,
            "schema kontig.reproduce/1 holds tables and no runs: give a directory that --out wrote",
        ),
        (r#"{"schema": "kontig.reproduce/6"}"#, "holds tables and no runs"),
    ] {
        write(dir, "result.json", text);
        refused(dir, &["rerun", "."], FAILED, &["kontig: ./result.json: ", says]);
        refused(dir, &["rerun", "result.json"], FAILED, &["kontig: result.json: ", says]);
    }
    std::fs::write(dir.join("result.json"), [0xff, 0xfe]).unwrap();
    refused(dir, &["rerun", "."], FAILED, &["./result.json", "UTF-8"]);
}

/// JSON of a session, but with other fields than this build writes.
#[test]
fn a_result_of_another_build_is_refused_with_what_to_do() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    kontig(dir, &["reproduce", &e, "--out", "r"]).assert().success();
    let read =
        |file: &str| -> serde_json::Value { serde_json::from_slice(&std::fs::read(dir.join(file)).unwrap()).unwrap() };
    let put = |file: &str, value: &serde_json::Value| std::fs::write(dir.join(file), value.to_string()).unwrap();
    let again = "run it again, or use the build that wrote it";
    let whole = read("r/result.json");
    let mut stored = whole.clone();
    stored["inputs"][0]["machine"]["novel"] = 1.into();
    put("r/result.json", &stored);
    for command in ["rerun", "show"] {
        let by = "kontig: r/result.json: written by another build of kontig than this one (0.1.0), or changed since";
        refused(dir, &[command, "r"], FAILED, &[&format!("{by} (unknown field 'novel'): {again}\n")]);
    }
    // A field that this build does not read is in the hash of the one that wrote it.
    let mut stored = whole.clone();
    stored["inputs"][0]["novel"] = 1.into();
    stored["input_sha256"]["small"] = "0".into();
    put("r/result.json", &stored);
    refused(dir, &["show", "r"], FAILED, &["the inputs of small have another hash", "another build", again]);
    put("r/result.json", &whole);
    let (run, resume) = ("r/runs/small/vanilla/1.json", ["reproduce", &*e, "--out", "r", "--resume"]);
    let mut without = read(run);
    without.as_object_mut().unwrap().remove("figures");
    put(run, &without);
    let by =
        "1.json: written by another build of kontig than this one (0.1.0), or changed since (missing field 'figures'";
    refused(dir, &resume, FAILED, &[by, ": give --out another directory"]);
    let mut request = read("r/request.json");
    request.as_object_mut().unwrap().remove("version");
    put("r/request.json", &request);
    let by = "r/request.json:1: written by another build of kontig than this one (0.1.0)";
    refused(dir, &resume, ASKED_WRONGLY, &[by, "(missing field 'version'", ": give --out another directory"]);
}

#[test]
fn a_result_that_was_changed_is_found_out() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    kontig(dir, &["reproduce", &e, "--out", "kept"]).assert().success();
    let file = dir.join("kept/result.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    let tampered = |text: String, code: i32, says: &[&str]| {
        assert_ne!(text, whole);
        std::fs::write(&file, text).unwrap();
        refused(dir, &["rerun", "kept"], code, &[&["kept"], says].concat());
    };
    let half = whole[..whole.len() / 2].to_string();
    tampered(half, FAILED, &["not a result"]);
    tampered(
        whole.replace("\"settle_s\": 1.0", "\"settle_s\": 2.0"),
        FAILED,
        &["inputs of small", "have another hash than it names"],
    );
    let other_seed = whole.replace("\"seed\": 1,", "\"seed\": 2,");
    tampered(other_seed, DIFFERENT, &["not reproduced", "runs/small/", "sha256"]);
    let at = whole.find("\"measured\": [").unwrap() + "\"measured\": [".len();
    let digit = at + whole[at..].find(|c: char| c.is_ascii_digit()).unwrap();
    let other = if whole.as_bytes()[digit] == b'7' { "8" } else { "7" };
    let mut figure = whole.clone();
    figure.replace_range(digit..=digit, other);
    tampered(figure, DIFFERENT, &["not reproduced", "row '", "before", "now"]);
    let hash = whole.find("\"sha256\": \"").unwrap() + "\"sha256\": \"".len();
    let mut other = whole.clone();
    other.replace_range(hash..hash + 4, "zzzz");
    tampered(other, FAILED, &["kept/runs/small/", "was changed", "result.json says zzzz"]);
    for elsewhere in ["/dev/zero", "runs/../../file", "../runs/x", "host.json"] {
        let other = whole.replacen("runs/small/patched__60/0.json", elsewhere, 1);
        tampered(other, FAILED, &["no place for a run's file"]);
    }
}

#[test]
fn a_result_whose_run_files_are_missing_cut_or_changed_is_not_rerun() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    kontig(dir, &["reproduce", &e, "--out", "kept"]).assert().success();
    let run = |name: &str| dir.join("kept/runs/small").join(name);
    let file = run("vanilla/1.json");
    let whole = std::fs::read(&file).unwrap();
    let damaged = |says: &[&str]| {
        for result in ["kept", "kept/result.json"] {
            refused(dir, &["rerun", result], FAILED, &[&["kontig: kept/runs/small/vanilla/1.json: "], says].concat());
        }
    };
    std::fs::remove_file(&file).unwrap();
    damaged(&["missing"]);
    std::fs::create_dir(&file).unwrap();
    damaged(&["no regular file"]);
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 7]).unwrap();
    damaged(&["is cut", &format!("{} of {} bytes", whole.len() - 7, whole.len())]);
    std::fs::write(&file, b"").unwrap();
    damaged(&["is cut", "0 of "]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    damaged(&["was changed", "sha256"]);
    std::fs::write(&file, [whole.as_slice(), b"\n"].concat()).unwrap();
    damaged(&["was changed", &format!("{} bytes instead of {}", whole.len() + 1, whole.len())]);
    std::fs::write(&file, &whole).unwrap();
    kontig(dir, &["rerun", "kept"]).assert().success().stderr("");

    std::fs::remove_dir_all(dir.join("kept/runs/small/vanilla")).unwrap();
    std::fs::remove_file(run("patched__60/0.json")).unwrap();
    let first = ["kept/runs/small/patched__60/0.json", "missing", "(2 more of the 4 run files"];
    refused(dir, &["rerun", "kept"], FAILED, &first);
    std::fs::remove_dir_all(dir.join("kept/runs")).unwrap();
    refused(dir, &["rerun", "kept"], FAILED, &["missing", "(3 more of the 4 run files"]);
}

#[test]
fn run_files_that_are_of_no_run_of_a_result_are_said() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    kontig(dir, &["reproduce", &e, "--out", "kept"]).assert().success();
    std::fs::write(dir.join("kept/runs/small/vanilla/7.json"), "{}").unwrap();
    let one = "kontig: kept: runs/small/vanilla/7.json is not part of this result: its result.json names no such run\n";
    kontig(dir, &["rerun", "kept"]).assert().success().stderr(one);
    std::fs::write(dir.join("kept/runs/note"), "").unwrap();
    let two = "kontig: kept: runs/note and 1 more are not part of this result: its result.json names no such run\n";
    kontig(dir, &["rerun", "kept"]).assert().success().stderr(two);
    assert!(dir.join("kept/runs/note").exists(), "nothing is deleted");
}

#[test]
fn a_result_is_never_written_over_another() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    kontig(dir, &["reproduce", &e, "--out", "kept"]).assert().success();
    let before = files(&dir.join("kept"));
    let result = std::fs::read(dir.join("kept/result.json")).unwrap();
    let again = ["reproduce", &e, "--out", "kept", "--seed", "2"];
    refused(dir, &again, ASKED_WRONGLY, &["kept holds result.json of an earlier result", "another directory"]);
    std::fs::remove_file(dir.join("kept/result.json")).unwrap();
    refused(dir, &again, ASKED_WRONGLY, &["kept holds host.json"]);
    std::fs::remove_file(dir.join("kept/host.json")).unwrap();
    refused(dir, &again, ASKED_WRONGLY, &["kept holds runs"]);
    std::fs::write(dir.join("kept/result.json"), result).unwrap();
    assert_eq!(before.len() - 1, files(&dir.join("kept")).len(), "all that was there still is");
    // Files that are not results are left alone and do no harm.
    std::fs::create_dir(dir.join("mine")).unwrap();
    write(dir, "mine/notes.txt", "mine");
    kontig(dir, &["reproduce", &e, "--out", "mine"]).assert().success();
    assert_eq!(std::fs::read_to_string(dir.join("mine/notes.txt")).unwrap(), "mine");
    kontig(dir, &["rerun", "mine"]).assert().success().stderr("");
}

const LONG_WATCH: &str = "measure = { kind = \"watch\", seconds = 9e8 }";

/// Starts `kontig`, sends SIGINT once `begun`, and returns the exit code and standard error.
fn interrupt(dir: &Path, args: &[&str], begun: impl Fn() -> bool) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    let mut child = command.current_dir(dir).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !begun() && Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{args:?} went on after Ctrl-C");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn ctrl_c_keeps_the_runs_that_were_finished() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("repetitions = 2", "repetitions = 10000")]);
    let second = dir.join("kept/runs/small/vanilla/1.json");
    let (code, stderr) = interrupt(dir, &["reproduce", &e, "--out", "kept", "-j1"], || second.exists());
    assert_eq!((code, stderr.lines().count()), (Some(FAILED), 1), "{stderr}");
    let kept = files(&dir.join("kept"));
    let runs = kept.iter().filter(|f| f.starts_with("runs")).count();
    let again = "the same command with --resume goes on";
    assert_eq!(stderr, format!("kontig: interrupted; {runs} of 20000 runs were finished and are kept: {again}\n"));
    assert!((2..20_000).contains(&runs));
    assert_eq!(kept.len(), runs + 3, "beside the runs, request.json, result.json and host.json: {kept:?}");
    for file in kept {
        let run = std::fs::read(dir.join("kept").join(&file)).unwrap();
        serde_json::from_slice::<serde_json::Value>(&run).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
}

#[test]
fn an_interrupted_session_is_resumed_and_its_result_is_that_of_an_uninterrupted_one() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    kontig(dir, &["reproduce", &e, "--out", "whole"]).assert().success();
    // Killed: no result, one run of four, and one that is another's.
    kontig(dir, &["reproduce", &e, "--out", "part"]).assert().success();
    for file in ["result.json", "runs/small/vanilla/1.json", "runs/small/patched__60/0.json"] {
        std::fs::remove_file(dir.join("part").join(file)).unwrap();
    }
    write(dir, "part/host.json", r#"{"wall_s": 4000.0, "peak_rss_bytes": 3221225472}"#);
    let resumed = kontig(dir, &["reproduce", &e, "--out", "part", "--resume"]).assert().success();
    let stderr = String::from_utf8_lossy(&resumed.get_output().stderr).into_owned();
    assert_eq!(stderr, "kontig: 2 of 4 runs are finished already\n");
    // The result took what all its sessions took.
    let stdout = String::from_utf8_lossy(&resumed.get_output().stdout).into_owned();
    let last = stdout.lines().last().unwrap_or_default();
    let (in_all, now) = last.split_once(" s in all, ").unwrap_or_else(|| panic!("{last}"));
    let in_all: f64 = in_all.split(' ').next_back().unwrap().parse().unwrap();
    let now: f64 =
        now.strip_suffix(" s in this session, 3.0 GiB at most").unwrap_or_else(|| panic!("{last}")).parse().unwrap();
    assert!(now > 0.0 && (in_all - 4000.0 - now).abs() < 0.11, "{last}");
    let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.join("part/host.json")).unwrap()).unwrap();
    assert!((facts["wall_s"].as_f64().unwrap() - 4000.0 - now).abs() < 1.0, "{facts}");
    for file in files(&dir.join("whole")).into_iter().filter(|file| !file.ends_with("host.json")) {
        let read = |of: &str| std::fs::read(dir.join(of).join(&file)).unwrap();
        assert!(read("whole") == read("part"), "{} differs", file.display());
    }
    kontig(dir, &["rerun", "part"]).assert().success();
    // A resumed session belongs to one request.
    let resume = ["reproduce", &e, "--out", "part", "--resume"];
    let other_seed = [&resume[..], &["--seed", "2"]].concat();
    refused(dir, &other_seed, ASKED_WRONGLY, &["part holds runs of seed 1"]);
    experiment(dir, &[("384", "383")]);
    refused(dir, &resume, ASKED_WRONGLY, &["part holds runs of other inputs of small"]);
    experiment(dir, &[]);
    std::fs::write(dir.join("part/runs/small/vanilla/1.json"), "{").unwrap();
    refused(dir, &resume, FAILED, &["part/runs/small/vanilla/1.json: no run that a session has written"]);
    std::fs::write(dir.join("part/request.json"), "{").unwrap();
    refused(dir, &resume, ASKED_WRONGLY, &["part/request.json:1: no request of an earlier session"]);
    kontig(dir, &["reproduce", &e, "--resume"]).assert().failure().code(ASKED_WRONGLY);
}

#[test]
fn a_result_cut_by_ctrl_c_is_rerun_as_far_as_it_goes() {
    let d = tmp();
    let dir = d.path();
    // The first variant's runs end at once, the others never.
    let e = experiment(dir, &[("measure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL\" }", LONG_WATCH)]);
    let second = dir.join("kept/runs/small/vanilla/1.json");
    let (code, stderr) = interrupt(dir, &["reproduce", &e, "--out", "kept", "-j1"], || second.exists());
    assert_eq!(code, Some(FAILED), "{stderr}");
    let says = "kept: identical, 2 runs byte for byte, as stored and as run again (2 of the 4 runs planned are not in \
                it)\n";
    kontig(dir, &["rerun", "kept"]).assert().success().stdout(says).stderr("");
    let whole = std::fs::read(&second).unwrap();
    std::fs::write(&second, &whole[..whole.len() - 7]).unwrap();
    refused(dir, &["rerun", "kept"], FAILED, &["kept/runs/small/vanilla/1.json: this run's file is cut"]);
}

#[test]
fn ctrl_c_before_the_first_run_is_finished_keeps_nothing_and_says_so() {
    let d = tmp();
    let dir = d.path();
    let text = [("measure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL\" }", LONG_WATCH), ("\"5.6\"", "\"6.1\"")];
    let e = experiment(dir, &text);
    let begun = dir.join("proc/small/vanilla/0/start/vmstat");
    let args = ["run", &e, "--procfs", "proc", "--out", "kept", "-j1"];
    let (code, stderr) = interrupt(dir, &args, || begun.exists());
    assert_eq!(code, Some(FAILED), "{stderr}");
    assert_eq!(stderr, "kontig: interrupted; none of 4 runs was finished, and nothing is kept\n");
    assert!(!dir.join("kept").exists());
    // No new session would replace what its runs have left, so it can be resumed.
    let args = [&args[..], &["--mmtests", "log", "--history", "h"]].concat();
    for args in [args.clone(), [&args[..], &["--resume"]].concat()] {
        std::fs::remove_dir_all(dir.join("proc")).unwrap();
        let (code, stderr) = interrupt(dir, &args, || begun.exists());
        assert_eq!(code, Some(FAILED), "{stderr}");
        let says = "interrupted; none of 4 runs was finished: the same command with --resume goes on\n";
        assert!(stderr.ends_with(says), "{stderr}");
    }
}

#[test]
fn ctrl_c_ends_a_single_long_run() {
    let d = tmp();
    let dir = d.path();
    let text = [("measure = { kind = \"hugealloc\", gfp = \"GFP_KERNEL\" }", LONG_WATCH)];
    let e = experiment(dir, &text);
    // Without proactive compaction nothing happens in that time and the run ends at once; with it,
    // the run is long.
    let begun = dir.join("proc/small/patched__60/0/start/vmstat");
    let page = dir.join("page.html");
    let args = ["reproduce", &e, "--procfs", "proc", "--html", "page.html", "-j1"];
    let (code, stderr) = interrupt(dir, &args, || begun.exists());
    assert_eq!(code, Some(FAILED), "{stderr}");
    assert_eq!(stderr, "kontig: interrupted; 2 of 4 runs were finished and are not stored (no --out)\n");
    assert!(!page.exists(), "no page of what is not complete");
}

#[test]
fn an_interrupted_verification_says_so_and_fails() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let begun = Instant::now();
    let (code, stderr) = interrupt(root, &["oracle", "verify", "all"], || begun.elapsed() > Duration::from_millis(300));
    assert_eq!((code, stderr.as_str()), (Some(FAILED), "kontig: interrupted\n"));
}

#[test]
fn two_sessions_never_share_a_directory() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[("repetitions = 2", "repetitions = 10000")]);
    let args = ["reproduce", &e, "--out", "r", "-j1"];
    let mut first = Command::new(program());
    let mut first = first.current_dir(dir).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !dir.join("r/runs/small/vanilla/1.json").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let resume = [&args[..], &["--resume"]].concat();
    refused(dir, &resume, ASKED_WRONGLY, &["another kontig is at work in r: wait for it, or give --out another"]);
    assert!(first.try_wait().unwrap().is_none(), "the first went on");
    // However a session ends, the next can go on, and does what is missing.
    first.kill().unwrap();
    first.wait().unwrap();
    let missing = dir.join("r/runs/small/vanilla/1.json");
    std::fs::remove_file(&missing).unwrap();
    let (_, stderr) = interrupt(dir, &resume, || missing.exists());
    assert!(stderr.contains(" of 20000 runs are finished already"), "{stderr}");
}
