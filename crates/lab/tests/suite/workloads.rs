//! The built-in workloads: each can be read, run on its machine, and starts from no base in
//! vain.

use kontig_lab::catalog;
use kontig_mm::Memory;
use kontig_profiles::linux;
use kontig_program::Placement;
use kontig_sim::{CostModel, Machine, MachineFile, Stop};
use kontig_workload::{Kind, Start, Workload, WorkloadFile};

/// The machine that a workload is for, or a small one in place of a large one.
fn machine_of(file: &WorkloadFile) -> Machine {
    let name = match file.machine.as_str() {
        "desktop-32g" => "tiny-64m",
        "skylake-1s" | "server-64g" => "guest-512m",
        name => name,
    };
    let file: MachineFile = catalog::machine(name).expect("it is built in").0;
    let memory = Memory::new(&file.spec().expect("zones"), linux("6.12")).expect("a valid machine");
    let mut machine = Machine::new(memory, CostModel::new(&file.costs));
    machine.set_processor(file.translation.clone());
    if file.has_disks() {
        machine.attach_disks(&file).expect("it has disks");
    }
    machine
}

/// Whether a phase has nothing but steps, none of which is timed.
fn steps_without_laps(w: &Workload, phase: &str) -> bool {
    let tasks = w.phases.iter().filter(|entry| entry.name == phase).flat_map(|entry| &entry.task);
    let untimed =
        |kind: &Kind| matches!(kind, Kind::Steps(steps) if steps.steps.iter().all(|step| step.name.is_none()));
    tasks.into_iter().all(|task| untimed(&task.run))
}

/// The same work, of a size for a test.
fn smaller(kind: &mut Kind) {
    match kind {
        Kind::Heap(heap) => heap.size = "32 MiB".into(),
        Kind::Accesses(heap) => (heap.size, heap.accesses) = ("32 MiB".into(), 1000),
        Kind::Fio(fio) => fio.files = 20,
        Kind::HugeFaults(faults) => faults.size = "16 MiB".into(),
        Kind::Unpack(archive) => (archive.files, archive.size) = (200, "8 MiB".into()),
        Kind::Fragment(fragment) if fragment.leave.is_some() => {
            let leave = if fragment.freed_per_section == 0 { "128 MiB" } else { "64 MiB" };
            fragment.leave = Some(leave.into());
        }
        Kind::Kbuild(build) => build.units = 2,
        Kind::ThpBursts(bursts) => (bursts.bursts, bursts.size) = (2, "8 MiB".into()),
        Kind::Highalloc(driver) => (driver.attempts, driver.after_s) = (3, 0.1),
        Kind::ForkingStore(store) => (store.size, store.requests) = ("4 MiB".into(), 100),
        Kind::YoungGeneration(heap) => {
            (heap.size, heap.eden, heap.collections) = ("64 MiB".into(), "32 MiB".into(), 2);
        }
        Kind::Guests(guests) => {
            (guests.guests, guests.lives_s) = (5, 0.1);
            guests.sizes.iter_mut().for_each(|size| *size = "32 MiB".into());
        }
        Kind::Processes(processes) => {
            processes.processes = 3;
            let mut does = Kind::Steps(processes.does.clone());
            smaller(&mut does);
            let Kind::Steps(does) = does else { return };
            processes.does = does;
        }
        Kind::Steps(steps) => {
            steps.repeat = 1;
            steps.files.iter_mut().for_each(|file| file.size = "8 MiB".into());
            steps.steps.iter_mut().filter_map(|step| step.size.as_mut()).for_each(|size| *size = "4 MiB".into());
            steps.steps.iter_mut().filter_map(|step| step.run.as_mut()).for_each(|kind| smaller(kind));
            // Two trees of a kernel.
            steps.steps.retain(|step| match (&step.run, step.tree) {
                (Some(run), _) => !matches!(&**run, Kind::Kbuild(build) if build.tree > 1),
                (None, Some(tree)) => tree <= 1 && step.to.is_none_or(|to| to <= 1),
                (None, None) => true,
            });
        }
        _ => {}
    }
}

#[test]
fn every_workload_known_by_name_can_be_run() {
    for (name, file) in catalog::workloads().expect("they are built in") {
        let mut w = file.workload.clone();
        w.phases.iter_mut().flat_map(|phase| &mut phase.task).for_each(|task| smaller(&mut task.run));
        w.validate().unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut m = machine_of(&file);
        for (file, pages) in w.scenario().files() {
            assert!(m.lay_file(file, pages), "{name}");
        }
        for phase in w.scenario().phases {
            let start = Start { free_pages: m.memory().nr_free_pages(), seed: 1, copies: 1, copy: 0 };
            let mut ids = Vec::new();
            for task in phase.foreground() {
                let program = task.start(&start).unwrap_or_else(|e| panic!("{name}: {e}"));
                ids.push(m.spawn(Box::new(program), Placement::Cpu(0)));
                assert_eq!(m.run(u64::MAX / 2, ids.last().copied()), Ok(Stop::ProgramDone), "{name}");
            }
            m.memory().check().unwrap_or_else(|e| panic!("{name}: {e}"));
            let programs: Vec<_> = ids.iter().map(|id| vec![m.program(*id).unwrap()]).collect();
            let found = phase.read(&programs);
            let some = found.iter().any(|of| !of.figures.is_empty() || !of.latencies.is_empty());
            let silent = name.starts_with("watch")
                || phase.name == "sync"
                || ids.is_empty()
                || steps_without_laps(&w, &phase.name);
            if phase.measured {
                assert_eq!(some, !silent, "{name}, {}", phase.name);
            }
        }
    }
}

#[test]
fn workloads_are_random_where_their_holes_are() {
    for (name, file) in catalog::workloads().expect("they are built in") {
        let fixed = ["watch-unmovable", "java", "jvm-heap", "model-server"].contains(&name);
        assert_eq!(file.workload.scenario().is_random(), !fixed, "{name}");
    }
}
