//! Files that start from a base: the keys they inherit, and the errors in bad ones.

use kontig_lab::catalog;
use kontig_lab::experiment::Experiment;
use kontig_lab::resolved::Resolved;
use std::path::{Path, PathBuf};

/// A file of a user's, and what is wrong with it by its reader, without its path.
struct Mine {
    dir: tempfile::TempDir,
    said: fn(&str) -> Result<(), String>,
}

impl Mine {
    fn new(said: fn(&str) -> Result<(), String>) -> Mine {
        Mine { dir: tempfile::tempdir().expect("a folder"), said }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path
    }

    fn said(&self, text: &str) -> String {
        self.said_of(&self.write("mine.toml", text))
    }

    fn said_of(&self, path: &Path) -> String {
        let said = (self.said)(path.to_str().expect("UTF-8")).err().unwrap_or_else(|| "nothing".into());
        assert_eq!(said.lines().count(), 1, "{said}");
        said.replace(&format!("{}/", self.dir.path().display()), "").replace(" ('kontig list' shows all)", "")
    }
}

fn machine(path: &str) -> Result<(), String> {
    catalog::machine(path).map(drop).map_err(|e| e.to_string())
}

fn workload(path: &str) -> Result<(), String> {
    catalog::workload(path).map(drop).map_err(|e| e.to_string())
}

fn experiment(path: &str) -> Result<(), String> {
    catalog::experiment(path).map(drop).map_err(|e| e.to_string())
}

fn target(path: &str) -> Result<(), String> {
    catalog::target(path).map(drop).map_err(|e| e.to_string())
}

#[test]
fn a_machine_takes_over_what_it_does_not_say() {
    let mine = Mine::new(machine);
    let file = mine.write(
        "mine.toml",
        "name = 'mine'\nsummary = 's'\nnotes = 'n'\nbase = 'xeon-1t'\nnodes = 2\ncpus = 4\n\
         [[zone]]\nnode = 1\nkind = 'Normal'\nend = '300 GiB'\nsource = 'less'\n\
         [costs]\nsyscall = { ns = 7, source = 'mine' }\n",
    );
    let (of, base) = (catalog::machine(file.to_str().unwrap()).unwrap().0, catalog::machine("xeon-1t").unwrap().0);
    assert_eq!((of.name.as_str(), of.cpus, of.thp), ("mine", 4, true));
    assert_eq!(of.zone[..3], base.zone[..3]);
    assert_eq!((of.zone.len(), of.zone[3].start.as_str(), of.zone[3].end.as_str()), (4, "258 GiB", "300 GiB"));
    for ((name, mine), (_, theirs)) in of.costs.iter().zip(base.costs.iter()) {
        assert_eq!(mine.ns, if name == "syscall" { 7.0 } else { theirs.ns }, "{name}");
    }
}

#[test]
fn a_machines_bad_base_is_refused_with_its_line() {
    let mine = Mine::new(machine);
    let with = |lines: &str| mine.said(&format!("name = 'mine'\nsummary = 's'\nnotes = 'n'\n{lines}\n"));
    assert_eq!(with("base = 'guest-512m'\ncpus = 2"), "nothing");
    assert_eq!(with("base = 'xeon-2t'"), "mine.toml:4: unknown machine 'xeon-2t': did you mean 'xeon-1t'?");
    assert_eq!(with("base = 3"), "mine.toml:4: base is a name in quotes");
    assert!(with("\nbase = './mine.toml'").starts_with("mine.toml:5: base './mine.toml' leads back to"));
    assert_eq!(
        with("base = 'xeon-1t'\ncpus = 80"),
        "mine.toml:5: 'cpus' says what base xeon-1t says already: leave it out"
    );
    assert_eq!(
        with("base = 'guest-512m'\n[[disk]]\nname = 'swap'\n\n[swap]\nsize = '512 MiB'"),
        "mine.toml:5: this disk says nothing but what base guest-512m says: leave it out"
    );
    assert_eq!(
        with("base = 'guest-512m'\n[[disk]]\nname = 'swap'\nkind = 'nvme'\nsource = 's'"),
        "mine.toml:7: 'kind' says what base guest-512m says already: leave it out"
    );
    assert_eq!(
        with("base = 'guest-512m'\n[[disk]]\nname = 'swap'\nread_us = 90"),
        "mine.toml:5: 'disk' differs from that of base guest-512m: say from where, source = \"…\""
    );
    assert_eq!(
        with("base = 'guest-512m'\n[costs]\nsyscall = { ns = 90 }"),
        "mine.toml:6: 'syscall' differs from that of base guest-512m: say from where, source = \"…\""
    );
    let fewer = "say how many fewer this machine keeps, or leave it out";
    assert_eq!(with("base = 'xeon-1t'\nnodes = 4"), format!("mine.toml:5: nodes: base xeon-1t has 4: {fewer}"));
    assert_eq!(
        with("cpus = 4\nnodes = 1"),
        "mine.toml:5: nodes says how many nodes of its base a machine keeps: name the base, or leave it out"
    );
    let slow = with("base = 'guest-512m'\n[[disk]]\nname = 'swap'\nread_mb_s = 0\nsource = 's'");
    assert!(slow.starts_with("mine.toml:7: disk swap: read_mb_s = 0"), "{slow}");
    let none = with("base = 'guest-512m'\n[swap]\ndisk = 'sdb'");
    assert!(none.starts_with("mine.toml:6: swap on disk 'sdb', which is not there"), "{none}");
    assert!(with("base = 'guest-512m'\ncpus = 'two'").starts_with("mine.toml:5: "));
}

#[test]
fn two_files_that_start_from_each_other_are_refused() {
    let mine = Mine::new(machine);
    mine.write("a.toml", "name = 'a'\nsummary = 's'\nnotes = 'n'\nbase = './b.toml'\n");
    let b = mine.write("b.toml", "name = 'b'\nsummary = 's'\nnotes = 'n'\n\ncosts = './a.toml'\n");
    let said = mine.said_of(&b);
    assert!(said.starts_with("a.toml:4: base './b.toml' leads back to"), "{said}");
    assert!(said.ends_with(": a machine is not its own base"), "{said}");
}

#[test]
fn a_workload_takes_over_phases_and_tasks_by_name() {
    let mine = Mine::new(workload);
    let file = mine.write(
        "mine.toml",
        "summary = 's'\nbase = 'kbuild+hugealloc'\n[[phase]]\nname = 'measure'\n[[phase.task]]\nname = 'kbuild'\n\
         run = { jobs = 2 }\n[[phase.task]]\nname = 'more'\nrun = { kind = 'compact' }\n",
    );
    let (of, name, _) = catalog::workload(file.to_str().unwrap()).unwrap();
    let base = catalog::workload("kbuild+hugealloc").unwrap().0;
    assert_eq!((name.as_str(), &of.machine, &of.sysctls), ("mine", &base.machine, &base.sysctls));
    let mut expected = base.workload.clone();
    let kontig_workload::Kind::Kbuild(build) = &mut expected.phases[1].task[1].run else { panic!("the build") };
    build.jobs = 2;
    let tasks: Vec<_> = of.workload.phases[1].task.iter().map(|task| task.name.as_deref().unwrap()).collect();
    assert_eq!(tasks, ["tar", "kbuild", "hugealloc", "more"]);
    expected.phases[1].task.push(of.workload.phases[1].task[3].clone());
    assert_eq!(of.workload, expected);
}

#[test]
fn work_of_another_kind_takes_over_no_parameters() {
    let mine = Mine::new(workload);
    let file = mine.write("mine.toml", "summary = 's'\nbase = 'heap'\nmeasure = { kind = 'compact' }\n");
    let of = catalog::workload(file.to_str().unwrap()).unwrap().0;
    assert_eq!(
        of.workload,
        catalog::workload("compact")
            .map(|(w, ..)| {
                let mut expected = catalog::workload("heap").unwrap().0.workload;
                expected.phases[2] = w.workload.phases[1].clone();
                expected
            })
            .unwrap()
    );
}

#[test]
fn a_task_with_each_is_one_for_each_value() {
    let task = |line: &str| {
        format!(
            "summary = 's'\nmachine = 'tiny-64m'\n\
             [[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\n{line}\n"
        )
    };
    let mine = Mine::new(workload);
    let run = "run = { kind = 'heap', advised = true }";
    let file = mine.write(
        "mine.toml",
        &task("name = 'heap'\ncopies = 1\neach = { size = ['1 MiB', '2 MiB'] }\nrun = { kind = 'heap' }"),
    );
    let of = catalog::workload(file.to_str().unwrap()).unwrap().0;
    let tasks: Vec<String> = of.workload.phases[0]
        .task
        .iter()
        .map(|task| match &task.run {
            kontig_workload::Kind::Heap(heap) => format!("{} {}", task.name.as_deref().unwrap(), heap.size),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tasks, ["heap 1 1 MiB", "heap 2 2 MiB"]);
    let said = |line: &str| mine.said(&task(line));
    assert_eq!(
        said("name = 'h'\neach = { size = ['1 MiB', '2 MiB'] }\nrun = { kind = 'heap', size = '1 MiB' }"),
        "mine.toml:8: size stands in run and in each: leave out one"
    );
    assert_eq!(
        said(&format!("each = {{ size = ['1 MiB'] }}\n{run}")),
        "mine.toml:7: a task with each needs a name: its copies are called after it, \"name 1\" and so on"
    );
    let form = "each has a list for each parameter that differs: each = { tree = [0, 1, 2] }";
    for each in ["3", "{}", "{ size = 3 }", "{ size = [] }"] {
        assert_eq!(said(&format!("name = 'h'\neach = {each}\n{run}")), format!("mine.toml:8: {form}"));
    }
    let two = said("name = 'h'\neach = { size = ['1 MiB'], tree = [1, 2] }\nrun = { kind = 'heap' }");
    assert_eq!(two, "mine.toml:8: each: size has 1 values where another has 2: give both as many");
    // Of what is wrong with one of them, the place is that of its value.
    let wrong = said("name = 'h'\neach = { size = [\n'1 MiB',\n'lots' ] }\nrun = { kind = 'heap' }");
    assert!(wrong.starts_with("mine.toml:8: ") && wrong.contains("lots"), "{wrong}");
}

#[test]
fn a_workloads_bad_base_is_refused_with_its_line() {
    let mine = Mine::new(workload);
    assert_eq!(
        mine.said("summary = 's'\nbase = 'kbuld'"),
        "mine.toml:2: unknown workload 'kbuld': did you mean 'kbuild'?"
    );
    assert_eq!(
        mine.said("summary = 's'\nbase = 'heap'\nsettle_s = 30"),
        "mine.toml:3: 'settle_s' says what base heap says already: leave it out"
    );
    let circle = mine.said("summary = 's'\nbase = './mine.toml'");
    assert!(circle.starts_with("mine.toml:2: base './mine.toml' leads back to"), "{circle}");
    assert!(
        mine.said("summary = 's'\nbase = 'heap'\nmeasure = { sise = 3 }")
            .starts_with("mine.toml:3: unknown key 'sise'")
    );
    let wrong = mine.said("summary = 's'\nbase = 'heap'\nmachine = 'xeon-2t'");
    assert!(wrong.starts_with("mine.toml:3: unknown machine 'xeon-2t'"), "{wrong}");
    let taken = mine.said_of(&mine.write("heap.toml", "summary = 's'\nbase = 'compact'\n"));
    assert_eq!(taken, "heap.toml:1: 'heap' is a built-in workload: change the name of the file");
}

#[test]
fn a_phase_or_task_that_the_base_lacks_is_named_with_the_nearest_and_those_it_has() {
    let mine = Mine::new(workload);
    let said = |rest: &str| mine.said(&format!("summary = 's'\nbase = 'kbuild+hugealloc'\n{rest}"));
    let measure =
        |task: &str| said(&format!("[[phase]]\nname = 'measure'\n[[phase.task]]\n{task}\nrun = {{ jobs = 3 }}"));
    assert_eq!(
        measure("name = 'kbuidl'"),
        "mine.toml:6: unknown task 'kbuidl': did you mean 'kbuild'? base kbuild+hugealloc has tar, kbuild, hugealloc \
         here"
    );
    let has = "base kbuild+hugealloc has tar, kbuild, hugealloc here";
    assert_eq!(measure("name = 'qqqqqqqqqqqq'"), format!("mine.toml:6: unknown task 'qqqqqqqqqqqq'; {has}"));
    assert_eq!(measure("copies = 1"), format!("mine.toml:5: a task without a name: which is meant? {has}"));
    let phases = "base kbuild+hugealloc has unpack, measure here";
    let phase = format!("mine.toml:4: unknown phase 'measur': did you mean 'measure'? {phases}");
    assert_eq!(said("[[phase]]\nname = 'measur'\ntask = [{ name = 'kbuild', run = { jobs = 3 } }]"), phase);
    assert_eq!(said("[[phase]]\nname = 'measur'\nseconds = 3"), phase);
    // The same below an experiment's workload.
    let mine = Mine::new(experiment);
    let head = "id = 'mine'\nsummary = 's'\nassumptions = ''\nmachine = 'box-2g'\n[workload]\n";
    let task = "base = 'kbuild+hugealloc'\n[[workload.phase]]\nname = 'measure'\n\
                task = [{ name = 'kbuidl', run = { jobs = 3 } }]";
    let end = "[[variant]]\nname = 'a'\nprofile = '6.1'\n";
    let said = mine.said(&format!("{head}{task}\n{end}"));
    assert!(said.starts_with("mine.toml:9: unknown task 'kbuidl': did you mean 'kbuild'?"), "{said}");
}

#[test]
fn a_new_phase_or_task_stands_beside_those_of_the_base() {
    let mine = Mine::new(workload);
    let file = mine.write(
        "mine.toml",
        "summary = 's'\nbase = 'kbuild+hugealloc'\n\
         [[phase]]\nname = 'measure'\ntask = [{ name = 'more', run = { kind = 'compact' } }]\n",
    );
    let of = catalog::workload(file.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}")).0.workload;
    let names: Vec<_> = of.phases[1].task.iter().map(|task| task.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["tar", "kbuild", "hugealloc", "more"]);
}

#[test]
fn an_experiment_uses_a_workload_by_name_or_with_changes() {
    let mine = Mine::new(experiment);
    let text = |workload: &str| {
        format!(
            "id = 'mine'\nsummary = 's'\nassumptions = ''\nmachine = 'tiny-64m'\n{workload}\n\
             [[variant]]\nname = 'a'\nprofile = '6.1'\n"
        )
    };
    let of = |workload: &str| -> Experiment {
        let file = mine.write("mine.toml", &text(workload));
        catalog::experiment(file.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}")).0
    };
    let heap = catalog::workload("heap").unwrap().0.workload;
    assert_eq!(of("workload = 'heap'").workload, heap);
    let small = of("workload = { base = 'heap', measure = { size = '8 MiB' } }").workload;
    assert_ne!(small, heap);
    assert!(small.prepares_as(&heap));
    let said = |workload: &str| mine.said(&text(workload));
    assert_eq!(said("workload = 'haep'"), "mine.toml:5: unknown workload 'haep': did you mean 'heap'?");
    assert_eq!(
        said("[workload]\nbase = 'heap'\nsettle_s = 30"),
        "mine.toml:7: 'settle_s' says what base heap says already: leave it out"
    );
    let wrong = said("[workload]\nbase = 'heap'\nmeasure = { size = 'lots' }");
    assert!(wrong.starts_with("mine.toml:7: ") && wrong.contains("lots"), "{wrong}");
}

#[test]
fn a_workloads_sysctls_are_those_of_the_cases_or_variants_that_set_no_others() {
    let mine = Mine::new(experiment);
    mine.write("load.toml", "base = 'fio+huge-faults'\nsummary = 's'\nsysctls = { 'vm.swappiness' = 10 }\n");
    let head = "id = 'mine'\nsummary = 's'\nassumptions = 'a'\nmachine = 'skylake-1s'\nworkload = './load.toml'\n";
    let of = |rest: &str| {
        let file = mine.write("mine.toml", &format!("{head}{rest}"));
        let (e, source) = catalog::experiment(file.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}"));
        let all = Resolved::all(&e, Some(&source)).unwrap_or_else(|e| panic!("{e}"));
        all.iter().flat_map(|r| &r.experiment.variant).map(kontig_lab::experiment::Variant::sysctl_texts).collect()
    };
    let set = |thp: &str, swappiness: &str| {
        vec![("thp.enabled".to_owned(), thp.to_owned()), ("vm.swappiness".into(), swappiness.into())]
    };
    let two = "[[variant]]\nname = 'a'\nprofile = '6.1'\n[[variant]]\nname = 'b'\nprofile = '6.1'\n";
    let variants: Vec<_> = of(&format!("{two}sysctls = {{ 'vm.swappiness' = 20 }}\n"));
    assert_eq!(variants, [set("always", "10"), set("always", "20")]);
    let cases: Vec<_> = of(&format!(
        "[[case]]\nname = 'x'\nsysctls = {{ swappiness = 30 }}\n\
         [[case]]\nname = 'y'\n[case.workload]\nbase = 'fio+huge-faults'\n{two}sysctls = {{ 'thp.enabled' = 'never' }}\n"
    ));
    let x = |thp: &str| vec![("swappiness".to_owned(), "30".to_owned()), ("thp.enabled".into(), thp.into())];
    let y = |thp: &str| vec![("thp.enabled".to_owned(), thp.to_owned())];
    assert_eq!(cases, [x("always"), x("never"), y("always"), y("never")]);
    let said = mine.said(&format!("{head}{two}sysctls = {{ swappiness = 10 }}\n"));
    assert_eq!(said, "mine.toml:12: 'swappiness' says what the workload says already: leave it out");
}

#[test]
fn an_experiment_assumes_what_its_base_does_and_takes_no_judgement_over() {
    let mine = Mine::new(experiment);
    let file = mine.write(
        "mine.toml",
        "id = 'mine'\nsummary = 's'\nbase = 'hugealloc-kbuild'\nassumptions = 'First this.'\n\
         rounds = 15\nrepetitions = 2\n",
    );
    let said = mine.said_of(&file);
    assert_eq!(said, "mine.toml:5: 'rounds' says what base hugealloc-kbuild says already: leave it out");
    let file = mine.write(
        "mine.toml",
        "id = 'mine'\nsummary = 's'\nbase = 'hugealloc-kbuild'\nassumptions = 'First this.'\nrepetitions = 2\n",
    );
    let of = catalog::experiment(file.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}")).0;
    let base = catalog::experiment("hugealloc-kbuild").unwrap().0;
    assert_eq!(of.assumptions, format!("First this. {}", base.assumptions));
    assert_eq!((of.repetitions, of.rounds, &of.variant, of.lack.len()), (2, 15, &base.variant, 0));
    let unknown = mine.said("id = 'mine'\nsummary = 's'\nbase = 'hugealloc-kbuld'\n");
    assert_eq!(unknown, "mine.toml:3: unknown experiment 'hugealloc-kbuld': did you mean 'hugealloc-kbuild'?");
}

#[test]
fn a_target_keeps_the_columns_of_its_variants() {
    let mine = Mine::new(target);
    let base = |lines: &str| {
        format!(
            "id = 'base'\ncolumns = ['a', 'b', 'c']\nvariants = ['a', 'b']\nnull_test = ['a', 'c']\n{lines}\
             [[row]]\nname = 'x'\nunit = 's'\nvalues = [1, 2, 3]\n\
             [[row]]\nname = 'y'\nunit = 's'\nvalues = [4, 5, nan]\n"
        )
    };
    let series = "rounds = 2\n[[series]]\nrow = 'x'\nvariant = 'a'\nvalues = [1, 2]\n";
    let file = mine.write("base.toml", &base(series).replace("nan", "6"));
    let of = catalog::target(file.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}")).0;
    assert_eq!((of.row[0].values.as_slice(), of.row[0].null_test), (&[1.0, 2.0][..], Some([1.0, 3.0])));
    mine.write("base.toml", &base(series).replace("null_test = ['a', 'c']\n", ""));
    let file = mine.write("mine.toml", "id = 'mine'\nbase = './base.toml'\nvariants = ['c']\n");
    let of = catalog::target(file.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}")).0;
    assert_eq!((of.row.len(), of.row[0].values.as_slice(), of.series.len()), (1, &[3.0][..], 0));
    let said = |lines: &str| mine.said(&format!("id = 'mine'\nbase = './base.toml'\n{lines}"));
    assert_eq!(said("variants = ['bb']"), "mine.toml:3: unknown column 'bb': did you mean 'b'?");
    assert_eq!(
        said("variants = ['a', 'b']"),
        "mine.toml:3: 'variants' says what base ./base.toml says already: leave it out"
    );
    assert_eq!(
        said("variants = ['c']\nnull_test = ['a']"),
        "mine.toml:4: null_test names the two columns of one kernel measured twice"
    );
    assert!(said("variants = ['a', 'c']").ends_with("row 'y' has the value NaN"), "{}", said("variants = ['a', 'c']"));
    let text = base("").replace("[4, 5, nan]", "[4, 5]");
    assert_eq!(mine.said(&text), "mine.toml:12: 2 values for 3 columns");
    let without = "null_test = ['a', 'b']\n";
    assert_eq!(
        mine.said(&format!("id = 'mine'\nvariants = ['a']\n{without}[[row]]\nname = 'x'\nunit = 's'\nvalues = [1]")),
        "mine.toml:3: null_test names two of a target's columns: say columns = [\"…\"]"
    );
}

#[test]
fn every_file_of_the_folders_is_built_in() {
    let files = |folder: &str| {
        let path = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(path).expect("a folder").map(|file| file.expect("an entry").file_name());
        let names = files.filter_map(|name| Some(name.to_str()?.strip_suffix(".toml")?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    };
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    let machines = catalog::machines().unwrap().into_iter().map(|m| m.name).collect();
    let workloads = catalog::workloads().unwrap().into_iter().map(|(name, _)| name.to_owned()).collect();
    let experiments = catalog::experiments().unwrap().into_iter().map(|e| e.id).collect();
    assert_eq!(files("machines"), sorted(machines));
    assert_eq!(files("workloads"), sorted(workloads));
    assert_eq!(files("experiments"), sorted(experiments));
    // kontig run takes a name that is either a workload or an experiment.
    assert!(files("workloads").iter().all(|name| !files("experiments").contains(name)));
    for target in files("experiments/targets") {
        assert_eq!(catalog::target(&target).unwrap().0.id, target);
    }
}

#[test]
fn a_sysctl_of_a_workload_that_no_kernel_takes_is_refused_where_it_stands() {
    let mine = Mine::new(workload);
    let with = |sysctl: &str| {
        let text = format!("summary = 's'\nbase = 'watch'\n\n[sysctls]\n{sysctl}\n");
        mine.said_of(&mine.write("mine.toml", &text))
    };
    for value in ["'banana'", "900", "-3", "nan"] {
        let said = with(&format!("'vm.compaction_proactiveness' = {value}"));
        assert!(said.starts_with("mine.toml:5: vm.compaction_proactiveness"), "{said}");
    }
    assert!(with("'thp.enabled' = 'allways'").starts_with("mine.toml:5: thp.enabled"));
    // Kernels from 6.15 on have this one, so others only say that they do not.
    let file = mine.write("mine.toml", "summary = 's'\nbase = 'watch'\n[sysctls]\n'vm.defrag_mode' = 1\n");
    assert!(catalog::workload(file.to_str().unwrap()).is_ok());
}
