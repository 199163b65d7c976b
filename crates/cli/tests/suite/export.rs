//! `kontig export`: results as tables, each run once.

use crate::common::{ASKED_WRONGLY, FAILED, experiment, files, kontig, program, refused, tmp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const TABLES: [&str; 7] = ["counters", "figures", "percentiles", "rounds", "runs", "series", "settings"];

fn run(dir: &Path, args: &[&str]) -> Value {
    let run = ["run", "watch", "--machine", "tiny-64m", "--profile", "5.9", "--json"];
    let done = kontig(dir, &[&run, args].concat()).assert().success();
    serde_json::from_slice(&done.get_output().stdout).expect("JSON")
}

/// Exports; the lines it prints.
fn exported(dir: &Path, args: &[&str]) -> Vec<String> {
    let done = kontig(dir, &[&["export"], args].concat()).assert().success().stderr("");
    String::from_utf8_lossy(&done.get_output().stdout).lines().map(str::to_owned).collect()
}

fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(dir).into_iter().map(|file| (file.clone(), fs::read(dir.join(file)).expect("a file"))).collect()
}

#[test]
fn results_exported_together_are_the_bytes_of_the_one_that_has_all_runs() {
    let d = tmp();
    let dir = d.path();
    let set = |values: &str| format!("vm.compaction_proactiveness={values}");
    run(dir, &["--set", &set("0,50,100"), "--repetitions", "2", "--out", "all"]);
    run(dir, &["--set", &set("0,50"), "--repetitions", "2", "--out", "some"]);
    run(dir, &["--set", &set("50,100"), "--seed", "2", "--out", "second"]);
    run(dir, &["--set", &set("0,100"), "--out", "first"]);
    assert_eq!(exported(dir, &["all", "--parquet", "p", "--csv", "c"])[0], "6 runs");
    let said = exported(dir, &["second", "first", "some", "--parquet", "p2", "--csv", "c2"]);
    // Seed 1 of 0 and seed 2 of 50 are in two of them.
    assert_eq!(said[0], "6 runs; 2 of them are in several results, and stand once");
    for (whole, merged) in [("p", "p2"), ("c", "c2")] {
        assert!(bytes(&dir.join(whole)) == bytes(&dir.join(merged)), "{whole}");
    }
    let names: Vec<String> = files(&dir.join("c")).iter().map(|file| file.display().to_string()).collect();
    assert_eq!(names, TABLES.map(|table| format!("{table}.csv")));
    let runs = fs::read_to_string(dir.join("c/runs.csv")).expect("runs");
    let seeds: Vec<[&str; 2]> = runs
        .lines()
        .skip(1)
        .map(|line| [3, 10].map(|column| line.split(',').nth(column).unwrap_or_default()))
        .collect();
    let variants = ["5.9+proactiveness=0", "5.9+proactiveness=100", "5.9+proactiveness=50"];
    assert_eq!(seeds, variants.map(|variant| [[variant, "1"], [variant, "2"]]).concat());
    let figures = fs::read_to_string(dir.join("c/figures.csv")).expect("figures");
    assert!(said.contains(&format!("c2/figures.csv: {} rows", figures.lines().count() - 1)), "{said:?}");
}

#[test]
fn shards_exported_together_are_the_bytes_of_the_whole() {
    let d = tmp();
    let dir = d.path();
    let args = ["--set", "vm.compaction_proactiveness=0,50,100", "--repetitions", "3"];
    run(dir, &[&args[..], &["--out", "whole"]].concat());
    exported(dir, &["whole", "--parquet", "p", "--csv", "c"]);
    let shard = |of: &'static str, out: &'static str| {
        let run = ["run", "watch", "--machine", "tiny-64m", "--profile", "5.9", "--shard", of, "--out", out];
        [&run[..], &args[..]].concat()
    };
    let mut said = String::new();
    for (of, out) in [("1/4", "s1"), ("2/4", "s2"), ("3/4", "s3"), ("4/4", "s4")] {
        let done = kontig(dir, &shard(of, out)).assert().success().stderr("");
        said += &String::from_utf8_lossy(&done.get_output().stdout);
    }
    assert_eq!(said.lines().next(), Some("shard 1/4: 3 of its 3 runs are in s1, of 9 in all"));
    assert_eq!(said.matches("2 of its 2 runs").count(), 3, "{said}");
    assert_eq!(exported(dir, &["s3", "s1", "s4", "s2", "--parquet", "p2", "--csv", "c2"])[0], "9 runs");
    for (whole, merged) in [("p", "p2"), ("c", "c2")] {
        assert!(bytes(&dir.join(whole)) == bytes(&dir.join(merged)), "{whole}");
    }
    // A shard is a result like any other: it can be rerun, and resumed as itself alone.
    kontig(dir, &["rerun", "s1"]).assert().success();
    kontig(dir, &[&shard("1/4", "s1")[..], &["--resume"]].concat()).assert().success();
    let other = [&shard("2/4", "s1")[..], &["--resume"]].concat();
    refused(dir, &other, ASKED_WRONGLY, &["s1 holds runs of another shard than 2/4", "an --out of its own"]);
    let said = exported(dir, &["s1", "s4", "--csv", "c3"]);
    assert_eq!(said[0], "5 runs");
    assert_eq!(
        said[1],
        "4 of 9 runs are missing: name the other shards, or run the command again with --resume and without --shard"
    );
    kontig(dir, &shard("5/4", "s5")).assert().failure().code(ASKED_WRONGLY);
}

#[test]
fn parameters_of_the_workload_stand_beside_sysctls() {
    let d = tmp();
    let dir = d.path();
    let given = ["--set", "vm.compaction_proactiveness=60", "--with", "holes=random,freed_per_section=256,300"];
    run(dir, &[&given[..], &["--out", "both"]].concat());
    exported(dir, &["both", "--csv", "t"]);
    let settings = fs::read_to_string(dir.join("t/settings.csv")).expect("settings");
    let rows: Vec<&str> = settings.lines().skip(1).filter_map(|row| Some(row.split_once(',')?.1)).collect();
    let of = |freed: u32| {
        [
            "sysctl,vm.compaction_proactiveness,60,60.0,false".to_owned(),
            format!("parameter,prepare.freed_per_section,{freed},{freed}.0,"),
            "parameter,prepare.holes,random,,".to_owned(),
        ]
    };
    assert_eq!(rows, [of(256), of(300)].concat());
    // One of them alone is the same run, whatever its column is called.
    let alone = ["--set", "vm.compaction_proactiveness=60", "--with", "holes=random,freed_per_section=300"];
    run(dir, &[&alone[..], &["--out", "alone"]].concat());
    exported(dir, &["alone", "--csv", "u"]);
    let inputs = |of: &str| -> Vec<String> {
        let runs = fs::read_to_string(dir.join(of).join("runs.csv")).expect("runs");
        runs.lines().skip(1).filter_map(|row| Some(row.rsplit(',').nth(1)?.to_owned())).collect()
    };
    assert_eq!(inputs("u")[..], inputs("t")[1..]);
}

/// The lines of the page's block of this number.
fn block(page: &str, language: &str, number: usize) -> String {
    let block = page.split(&format!("```{language}\n")).nth(number + 1).and_then(|rest| rest.split("```").next());
    block.expect("a block").to_owned()
}

#[test]
fn the_pages_jobs_are_together_the_sweep() {
    const SCALE: &str = include_str!("../../../../docs/experimenter/scale.md");
    let d = tmp();
    let dir = d.path();
    let path = format!(
        "{}:{}",
        Path::new(program()).parent().expect("a directory").display(),
        std::env::var("PATH").expect("one")
    );
    let sh = |script: &str, variables: &[(&str, &str)]| {
        let mut sh = Command::new("sh");
        sh.args(["-ec", script]).current_dir(dir).env("PATH", &path).envs(variables.iter().copied());
        let done = sh.output().expect("a shell");
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let sweep = block(SCALE, "sh", 0);
    // The page's sweep, on a machine that is quick to test.
    let small = |script: &str| {
        let quick = "watch --machine tiny-64m --profile 5.9";
        script.replace("hugealloc --machine box-2g --profile 6.1", quick).replace("--repetitions 40", "--repetitions 4")
    };
    sh(&format!("{}kontig run $SWEEP --out whole", small(&sweep)), &[]);
    exported(dir, &["whole", "--csv", "w"]);
    let slurm = small(&block(SCALE, "sh", 2));
    assert!(slurm.contains("#SBATCH --array=1-8"), "{slurm}");
    let manifest = block(SCALE, "yaml", 0);
    let (_, script) = manifest.split_once("- |\n").expect("a script");
    let lines = script.lines().take_while(|line| line.starts_with("            "));
    let script: String = lines.map(|line| format!("{}\n", line.trim())).collect();
    for job in 0..8 {
        sh(&slurm, &[("SLURM_ARRAY_TASK_ID", &(job + 1).to_string())]);
        let script = small(&script).replace("/results/", "k-");
        sh(&script, &[("JOB_COMPLETION_INDEX", &job.to_string())]);
    }
    for (parts, tables) in [("part-", "s"), ("k-", "k")] {
        let parts: Vec<String> = files_named(dir, parts);
        assert_eq!(parts.len(), 8);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        exported(dir, &[&parts[..], &["--csv", tables]].concat());
        assert!(bytes(&dir.join(tables)) == bytes(&dir.join("w")), "{tables}");
    }
}

/// The names in a directory that begin so.
fn files_named(dir: &Path, begins: &str) -> Vec<String> {
    let names = fs::read_dir(dir).expect("a directory").map(|of| of.expect("an entry").file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with(begins)).collect()
}

#[test]
fn every_run_of_a_pace_sweep_is_found() {
    let d = tmp();
    let pace = "\n[pace]\nmachine = \"tiny-64m\"\npause_us = [0, 100]\n";
    let file = experiment(d.path(), &[("[[variant]]", &format!("{pace}\n[[variant]]"))]);
    kontig(d.path(), &["reproduce", &file, "--out", "r"]).assert().success();
    assert_eq!(exported(d.path(), &["r", "--csv", "c"])[0], "8 runs");
}

#[test]
fn an_existing_directory_is_refused_and_a_failure_leaves_nothing() {
    let d = tmp();
    let dir = d.path();
    run(dir, &["--out", "r"]);
    fs::create_dir(dir.join("there")).expect("made");
    let export = |args: &[&'static str]| [&["export"], args].concat();
    refused(dir, &export(&["r", "--csv", "there"]), ASKED_WRONGLY, &["there exists", "name a directory that does not"]);
    refused(dir, &export(&["r", "--csv", "x/y"]), FAILED, &["there is no directory x: make it first"]);
    refused(dir, &export(&["r", "--csv", "t", "--parquet", "./t"]), ASKED_WRONGLY, &["--csv and --parquet both name"]);
    refused(dir, &export(&["r", "./r", "--csv", "t"]), ASKED_WRONGLY, &["./r is given twice"]);
    refused(dir, &export(&["there", "--csv", "t"]), FAILED, &["there/result.json: no result can be read here"]);
    fs::write(dir.join("r/runs/watch/5.9/0.json"), "cut").expect("written");
    refused(dir, &export(&["r", "--csv", "t", "--parquet", "p"]), FAILED, &["r/runs/watch/5.9/0.json", "is cut"]);
    let mut left: Vec<_> = fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["r", "there"]);
    assert!(files(&dir.join("there")).is_empty());
}

#[test]
fn results_that_disagree_about_a_run_are_refused() {
    let d = tmp();
    let dir = d.path();
    run(dir, &["--out", "a"]);
    run(dir, &["--out", "b"]);
    let (file, result) = (dir.join("b/runs/watch/5.9/0.json"), dir.join("b/result.json"));
    let text = fs::read_to_string(&file).expect("a run");
    let changed = text.replacen("\"random\":true", "\"random\":false", 1);
    assert!(changed != text, "it has the field");
    fs::write(&file, &changed).expect("written");
    // Another build would have stored the hash of what it made.
    let mut stored: Value = serde_json::from_str(&fs::read_to_string(&result).expect("a result")).expect("JSON");
    stored["runs"]["runs/watch/5.9/0.json"]["bytes"] = changed.len().into();
    stored["runs"]["runs/watch/5.9/0.json"]["sha256"] = sha256(&file).into();
    fs::write(&result, stored.to_string()).expect("written");
    refused(dir, &["export", "a", "b", "--csv", "t"], FAILED, &["b/runs/watch/5.9/0.json", "another build of kontig"]);
    assert!(!dir.join("t").exists());
}

fn sha256(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().expect("sha256sum");
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
}

const PAGE: &str = include_str!("../../../../docs/experimenter/tables.md");

/// A Python that has DuckDB: of the virtual environment that `.ci/run` makes, or the host's.
fn python_with_duckdb() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let has = |python: &PathBuf| {
        Command::new(python).args(["-c", "import duckdb"]).output().is_ok_and(|output| output.status.success())
    };
    [own, "python3".into()].into_iter().find(has)
}

/// The answers to the page's queries as Markdown, for the tables below `dir` with this ending.
fn answers(python: &Path, dir: &Path, queries: &[String]) -> Vec<String> {
    const ASK: &str = "\
import duckdb, json, sys
for query in json.load(sys.stdin):
    answer = duckdb.sql(query)
    rows = [answer.columns] + [['---'] * len(answer.columns)] + answer.fetchall()[:4]
    cell = lambda value: f'{value:.4g}' if isinstance(value, float) else str(value)
    print('\\n'.join('| ' + ' | '.join(map(cell, row)) + ' |' for row in rows), end='\\n\\n')
";
    let mut child = Command::new(python)
        .args(["-c", ASK])
        .current_dir(dir)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("Python");
    let asked = serde_json::to_vec(queries).expect("JSON");
    child.stdin.take().expect("a pipe").write_all(&asked).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "DuckDB has no answer");
    String::from_utf8_lossy(&output.stdout).trim_end().split("\n\n").map(str::to_owned).collect()
}

#[test]
fn duckdb_answers_the_pages_queries_as_the_page_says_or_skipped() {
    let Some(python) = python_with_duckdb() else {
        return writeln!(std::io::stderr(), "skipped: Python has no DuckDB (pip install duckdb)").expect("a stream");
    };
    let d = tmp();
    let dir = d.path();
    let sweep = ["--set", "vm.compaction_proactiveness=0..100:50", "--repetitions", "5", "--out", "result"];
    let table = run(dir, &sweep);
    exported(dir, &["result", "--parquet", "tables", "--csv", "csv"]);
    let queries: Vec<String> =
        PAGE.split("```sql\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect();
    assert_eq!(queries.len(), 3);
    let answered = answers(&python, dir, &queries);
    for answer in &answered {
        assert!(PAGE.contains(&format!("\n{answer}\n")), "the page must say\n{answer}");
    }
    let of_csv: Vec<String> =
        queries.iter().map(|query| query.replace("'tables/", "'csv/").replace(".parquet'", ".csv'")).collect();
    assert_eq!(answers(&python, dir, &of_csv), answered);

    // The same as kontig's own table says.
    let rows = table["experiments"][0]["rows"].as_array().expect("rows");
    let score = rows.iter().find(|row| row["name"] == "fragmentation score after").expect("a figure");
    let medians: Vec<f64> =
        score["measured"].as_array().expect("variants").iter().filter_map(|m| m["value"].as_f64()).collect();
    let cells = |answer: &str| -> Vec<Vec<String>> {
        let line = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        answer.lines().skip(2).map(line).collect()
    };
    let curve: Vec<f64> = cells(&answered[0]).iter().filter_map(|row| row[1].parse().ok()).collect();
    assert_eq!(curve, medians);
    for row in cells(&answered[1]) {
        let own = rows.iter().find(|own| own["name"] == *row[0] && own["phase"] == *row[1]).expect("a row");
        let at = own_column(&table, &row[2]);
        let pairs = &own["pairs"][at];
        assert_eq!(
            [&pairs["of"], &pairs["lower"], &pairs["higher"]].map(Value::to_string),
            [3, 4, 5].map(|i| row[i].clone())
        );
    }
    for row in cells(&answered[2]) {
        let (answer, own): (f64, f64) =
            (row[1].parse().expect("a number"), mean_of_free_huge_pages(&dir.join("result"), &row[0]));
        assert!((answer / own - 1.0).abs() < 1e-3, "{answer}, not {own}");
    }
}

fn own_column(table: &Value, variant: &str) -> usize {
    let variants = table["experiments"][0]["variants"].as_array().expect("variants");
    variants.iter().position(|known| known == variant).expect("a variant")
}

/// The mean over time of the free huge pages of a variant's stored runs.
fn mean_of_free_huge_pages(result: &Path, variant: &str) -> f64 {
    let (mut sum, mut time) = (0.0, 0.0);
    for file in files(&result.join("runs/watch").join(variant)) {
        let text = fs::read_to_string(result.join("runs/watch").join(variant).join(file)).expect("a run");
        let run: Value = serde_json::from_str(&text).expect("JSON");
        let series = run["series"].as_array().expect("series").iter().find(|of| of["name"] == "free huge pages");
        let point = |point: &Value| (point[0].as_f64().expect("a time"), point[1].as_f64().expect("a value"));
        let points: Vec<_> =
            series.expect("it is there")["points"].as_array().expect("points").iter().map(point).collect();
        for two in points.windows(2) {
            sum += two[0].1 * (two[1].0 - two[0].0);
            time += two[1].0 - two[0].0;
        }
    }
    sum / time
}
