"""Sweeps on clusters of which a worker is killed: the command's tables, byte for byte, and nothing is done twice unless
it was lost. SEEDS=25 makes it 500 cells instead of 60."""

import hashlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import defaultdict
from concurrent.futures import Executor
from pathlib import Path

import kontig

SEEDS = int(os.environ.get("SEEDS", 3))
VALUES = list(range(0, 100, 10))
SPACE = {
    "workload": "watch",
    "machine": "tiny-64m",
    "profile": ["5.9", "5.10"],
    "set": {"vm.compaction_proactiveness": VALUES},
    "seed": range(1, SEEDS + 1),
}
CELLS = 2 * len(VALUES) * SEEDS


def noted(log, call, cell):
    """Carries out a cell, and notes before that which process does."""
    with open(log, "a") as file:
        file.write(f"{hashlib.sha256(cell).hexdigest()} {os.getpid()}\n")
    return call(cell)


class Noted(Executor):
    """An executor whose processes note what they do."""

    def __init__(self, executor, log):
        self.executor, self.log = executor, log

    def submit(self, call, /, *args, **kwargs):
        return self.executor.submit(noted, str(self.log), call, *args, **kwargs)


class AWorkerIsKilled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        values = ",".join(map(str, VALUES))
        request = f"run watch --machine tiny-64m --profile 5.9,5.10 --set vm.compaction_proactiveness={values}"
        for args in f"{request} --repetitions {SEEDS} --out result", "export result --parquet parquet --csv csv":
            subprocess.run(
                [os.environ["KONTIG"], *args.split()],
                cwd=cls.dir,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def read(self, name):
        return {path.name: path.read_bytes() for path in (self.dir / name).iterdir()}

    def sweeps(self, name, executor):
        """Sweeps, and kills the process that begins the cell in the middle."""
        log = self.dir / f"{name}.log"
        log.touch()
        killed = []

        def kill():
            while len(lines := log.read_text().splitlines()) < CELLS // 2:
                time.sleep(0.002)
            killed.append(lines[-1].split()[1])
            os.kill(int(killed[0]), signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        began = time.monotonic()
        tables = kontig.sweep(SPACE, Noted(executor, log))
        took = time.monotonic() - began
        killer.join(10)
        tables.write_parquet(self.dir / f"{name}-parquet")
        tables.write_csv(self.dir / f"{name}-csv")
        for made, expected in (f"{name}-parquet", "parquet"), (f"{name}-csv", "csv"):
            self.assertEqual(self.read(made), self.read(expected), made)
        by = defaultdict(list)
        for line in log.read_text().splitlines():
            cell, process = line.split()
            by[cell].append(process)
        self.assertEqual(len(by), CELLS)
        again = {cell: processes for cell, processes in by.items() if len(processes) > 1}
        self.assertEqual([of for of in again.values() if killed[0] not in of], [], "done twice, and was not lost")
        # Whether a new worker still finds work to do is chance; that others do what was lost is not.
        self.assertNotIn(killed[0], [processes[-1] for processes in again.values()], "it was dead")
        self.assertGreater(len({process for of in by.values() for process in of}), 1, "others went on")
        print(f"{name}: {CELLS} cells in {took:.1f} s, {len(again)} of them lost and done again", file=sys.stderr)

    def test_of_a_dask_cluster_or_skipped(self):
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            return print("skipped: Python has no Dask (pip install distributed)", file=sys.stderr)
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL)
        with cluster, Client(cluster) as client:
            self.sweeps("dask", client.get_executor(pure=False))

    def test_of_a_ray_cluster_or_skipped(self):
        try:
            import ray
        except ImportError:
            return print("skipped: Python has no Ray (pip install ray)", file=sys.stderr)
        from kontig.ray import RayExecutor

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="critical")
        self.addCleanup(ray.shutdown)
        self.sweeps("ray", RayExecutor())


if __name__ == "__main__":
    unittest.main()
