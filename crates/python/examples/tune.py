"""Searches the sysctls that are best for a machine and a workload within a CPU budget, with Optuna.

    pip install optuna duckdb
    python tune.py --workload hugealloc-busy --machine box-2g --figure 'hugepage alloc latency p99' --budget 0.003

The budget is the time of kcompactd and kswapd, as a share of one CPU. Each trial is the mean over the same seeds. The
best setting within the budget is then held against boot's on seeds that the search has not seen.
"""

import argparse
import os
import sys
import time
import warnings

import duckdb
import kontig
import optuna

#: What is searched: a sysctl, the least and the greatest value, and whether steps are by factors.
SEARCHED = [
    ("vm.compaction_proactiveness", 0, 100, False),
    ("vm.extfrag_threshold", 0, 1000, False),
    ("vm.watermark_scale_factor", 10, 1000, True),
    ("vm.watermark_boost_factor", 0, 30000, False),
]
#: Seeds of the search, and those of the check.
SEARCH, CHECK = range(1, 4), range(101, 111)


def measured(asked, settings, seeds):
    """The figure, and the daemons' share of a CPU, by seed."""
    space = {"workload": asked.workload, "machine": asked.machine, "profile": asked.profile}
    tables = kontig.sweep(space | {"set": settings, "seed": seeds})
    runs, figures = tables.runs, tables.figures
    query = """
        SELECT any_value(value) FILTER (figure = $figure AND phase = 'measure'),
            sum(value) FILTER (figure IN ('kcompactd CPU time', 'kswapd CPU time') AND phase = 'total')
                / any_value(value) FILTER (figure = 'elapsed' AND phase = 'total')
        FROM runs JOIN figures USING (run) GROUP BY seed ORDER BY seed
    """
    with duckdb.connect() as db:
        db.register("runs", db.from_arrow(runs)), db.register("figures", db.from_arrow(figures))
        return db.execute(query, {"figure": asked.figure}).fetchall()


def mean(rows, column):
    values = [row[column] for row in rows]
    if None in values:
        sys.exit("no such figure in the measured phase: kontig run … --all-figures names them")
    return sum(values) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="hugealloc-busy")
    parser.add_argument("--machine", default="box-2g")
    parser.add_argument("--profile", default="6.1")
    parser.add_argument("--figure", default="hugepage alloc latency p99", help="to be made small")
    parser.add_argument("--budget", type=float, default=0.003, help="share of a CPU")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--trials", type=int, help="as many at most")
    asked = parser.parse_args()
    # A setting that is what boot sets anyway is a trial like any other.
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def trial(trial):
        settings = {name: trial.suggest_int(name, low, high, log=log) for name, low, high, log in SEARCHED}
        rows = measured(asked, settings, SEARCH)
        trial.set_user_attr("over", mean(rows, 1) - asked.budget)
        return mean(rows, 0)

    sampler = optuna.samplers.TPESampler(seed=1, constraints_func=lambda trial: [trial.user_attrs["over"]])
    study = optuna.create_study(sampler=sampler)
    began = time.monotonic()
    # A run does not hold the interpreter, so threads are enough.
    study.optimize(trial, n_trials=asked.trials, timeout=asked.seconds, n_jobs=os.cpu_count())
    done = [trial for trial in study.trials if trial.value is not None]
    within = [trial for trial in done if trial.user_attrs["over"] <= 0]
    print(f"{len(done)} trials in {time.monotonic() - began:.0f} s, {len(within)} of them within the budget")
    if not within:
        return print("nothing fits the budget")
    best = min(within, key=lambda trial: trial.value)
    for name, value in best.params.items():
        print(f"  {name} = {value}")
    print(f"{asked.figure}, mean of {len(CHECK)} seeds that the search has not seen; daemons' share of a CPU:")
    boot, found = measured(asked, {}, CHECK), measured(asked, best.params, CHECK)
    for name, rows in ("boot's settings", boot), ("found", found):
        print(f"  {name}: {mean(rows, 0):.4g}; {100 * mean(rows, 1):.2f} %")
    better = sum(new[0] < old[0] for old, new in zip(boot, found))
    print(f"  lower in {better} of {len(CHECK)} seeds")


if __name__ == "__main__":
    main()
