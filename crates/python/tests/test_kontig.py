"""The wheel: its tables are those of the command, byte for byte, whatever carries the runs out."""

import ast
import contextlib
import csv
import multiprocessing
import os
import subprocess
import tempfile
import unittest
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path

import duckdb
import kontig

SPACE = {
    "workload": "watch",
    "machine": "tiny-64m",
    "profile": ["5.9", "5.10"],
    "set": {"vm.compaction_proactiveness": [0, 60]},
    "seed": [1, 2],
}
NAMES = ["runs", "settings", "figures", "rounds", "percentiles", "series", "counters"]


class Backwards(Executor):
    """Carries out nothing until a result is wanted, and then the last first."""

    def __init__(self):
        self.waiting = []

    def submit(self, call, /, *args, **kwargs):
        future = Future()
        future.result = lambda timeout=None: self.carry_out() or Future.result(future, timeout)
        self.waiting.append((future, call, args, kwargs))
        return future

    def carry_out(self):
        while self.waiting:
            future, call, args, kwargs = self.waiting.pop()
            future.set_result(call(*args, **kwargs))


class TheTables(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def command(self, *args):
        subprocess.run([os.environ["KONTIG"], *args], cwd=self.dir, check=True, stdout=subprocess.DEVNULL)

    def files(self, tables, name):
        tables.write_parquet(self.dir / f"{name}-parquet")
        tables.write_csv(str(self.dir / f"{name}-csv"))
        return self.read(f"{name}-parquet") | self.read(f"{name}-csv")

    def read(self, name):
        return {path.name: path.read_bytes() for path in (self.dir / name).iterdir()}

    def same(self, files, expected):
        self.assertEqual(len(files), 2 * len(NAMES))
        self.assertEqual([name for name in expected if files[name] != expected[name]], [])

    def test_are_those_of_the_command_whatever_executor_carries_the_runs_out(self):
        self.command(
            *"run watch --machine tiny-64m --profile 5.9,5.10 --set vm.compaction_proactiveness=0,60".split(),
            *"--repetitions 2 --out result".split(),
        )
        self.command(*"export result --parquet parquet --csv csv".split())
        expected = self.read("parquet") | self.read("csv")
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawn) as processes:
            for name, executor in [("threads", None), ("processes", processes), ("backwards", Backwards())]:
                with self.subTest(name):
                    self.same(self.files(kontig.sweep(SPACE, executor), name), expected)
        self.assertFalse(self.files(kontig.sweep(SPACE | {"seed": 3}), "other") == expected)

    def test_a_run_is_its_cell_of_a_sweep(self):
        tables = kontig.run(
            "watch", machine="tiny-64m", profile="5.9", set={"vm.compaction_proactiveness": 60}, seed=2
        )
        self.command(
            *"run watch --machine tiny-64m --profile 5.9 --set vm.compaction_proactiveness=60 --seed 2".split(),
            *"--out result".split(),
        )
        self.command(*"export result --parquet parquet --csv csv".split())
        self.same(self.files(tables, "run"), self.read("parquet") | self.read("csv"))

    def test_a_parameter_of_the_workload_is_that_of_the_command(self):
        with_ = {"holes": "random", "freed_per_section": [256, 300]}
        swept = kontig.sweep({"workload": "watch", "machine": "tiny-64m", "profile": "5.9", "with": with_})
        self.command(
            *"run watch --machine tiny-64m --profile 5.9 --with holes=random,freed_per_section=256,300".split(),
            *"--out result".split(),
        )
        self.command(*"export result --parquet parquet --csv csv".split())
        files = self.files(swept, "sweep")
        self.same(files, self.read("parquet") | self.read("csv"))
        rows = list(csv.DictReader(files["settings.csv"].decode().splitlines()))
        self.assertEqual({row["kind"] for row in rows}, {"parameter"})
        self.assertEqual(
            sorted((row["name"], row["value"], row["number"]) for row in rows),
            [("prepare.freed_per_section", "256", "256.0"), ("prepare.freed_per_section", "300", "300.0")]
            + [("prepare.holes", "random", "")] * 2,
        )
        # The same inputs, asked for alone.
        with_ = {"holes": "random", "freed_per_section": 300}
        alone = self.files(kontig.run("watch", machine="tiny-64m", profile="5.9", with_=with_), "alone")
        runs = [list(csv.DictReader(of["runs.csv"].decode().splitlines())) for of in (alone, files)]
        self.assertEqual(runs[0][0]["inputs"], runs[1][1]["inputs"])

    def test_are_arrow_tables_with_the_rows_of_the_files(self):
        tables = kontig.run("watch", machine="tiny-64m", profile="5.9")
        tables.write_csv(self.dir / "csv")
        for name in NAMES:
            table = getattr(tables, name)
            with open(self.dir / "csv" / f"{name}.csv", newline="") as file:
                head, *rows = csv.reader(file)
            self.assertEqual((table.name, table.column_names, len(table)), (name, head, len(rows)))
            read = duckdb.from_arrow(table)
            self.assertEqual((read.columns, len(read.fetchall())), (head, len(rows)))
        figures = tables.figures
        ((score,),) = duckdb.sql("SELECT value FROM figures WHERE figure = 'fragmentation score after'").fetchall()
        self.assertTrue(0 <= score <= 100)

    def test_a_seed_that_changes_nothing_runs_once(self):
        space = {"workload": "compact", "machine": "tiny-64m", "profile": "6.1", "seed": [1, 2, 1]}
        self.command(*"run compact --machine tiny-64m --profile 6.1 --repetitions 2 --out result".split())
        self.command(*"export result --parquet parquet --csv csv".split())
        self.same(self.files(kontig.sweep(space), "sweep"), self.read("parquet") | self.read("csv"))

    def test_what_is_wrong_is_said_and_leaves_nothing(self):
        for change, said in [
            ({"workload": "wach"}, "did you mean 'watch'"),
            ({"set": {"vm.compaction_proactivness": 1}}, "did you mean 'vm.compaction_proactiveness'"),
            ({"set": {"vm.compaction_proactiveness": []}}, "nothing would run"),
            ({"seed": []}, "nothing would run"),
            ({"seeds": 1}, "unknown parameter 'seeds'"),
        ]:
            with self.subTest(change), self.assertRaisesRegex(ValueError, said):
                kontig.sweep(SPACE | change)
        with self.assertRaisesRegex(ValueError, "exists, and nothing is overwritten"):
            kontig.run("watch", machine="tiny-64m").write_csv(self.dir)
        with self.assertRaisesRegex(ValueError, "no bytes that kontig made"):
            kontig._kontig.run_cell(b"{}")

    def test_a_note_of_the_command_is_a_warning(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            kontig.run("watch", machine="tiny-64m", profile="5.9", set={"vm.extfrag_threshold": 500})
        self.assertEqual([str(of.message) for of in said], ["vm.extfrag_threshold=500 is what boot sets anyway"])


class ThePackage(unittest.TestCase):
    def test_is_typed_as_it_is(self):
        package = Path(kontig.__file__).parent
        self.assertTrue((package / "py.typed").exists())
        stub = ast.parse((package / "_kontig.pyi").read_text())
        typed = {}
        for of in stub.body:
            if isinstance(of, ast.ClassDef):
                typed[of.name] = {method.name for method in of.body if isinstance(method, ast.FunctionDef)}
            elif isinstance(of, ast.FunctionDef):
                typed[of.name] = set()
        module = kontig._kontig
        self.assertEqual(set(typed), {name for name in dir(module) if not name.startswith("__")})
        for name in ["Table", "Tables", "Gathering"]:
            own = {method for method in vars(getattr(module, name)) if not method.startswith("__") or "arrow" in method}
            self.assertEqual(typed[name] - {"__len__"}, own, name)

    def test_the_pages_examples_run(self):
        page = Path(os.environ["PAGE"]).read_text()
        examples = [rest.split("```")[0] for rest in page.split("```python\n")[1:]]
        self.assertGreaterEqual(len(examples), 2)
        with tempfile.TemporaryDirectory() as dir, contextlib.chdir(dir):
            names = {}
            for example in examples:
                exec(compile(example, "python.md", "exec"), names)


if __name__ == "__main__":
    unittest.main()
