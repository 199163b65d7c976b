"""The examples: the notebook draws its front, and the search finds a setting within its budget."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


class TheExamples(unittest.TestCase):
    def test_the_notebook_draws_a_front_or_skipped(self):
        try:
            import matplotlib
        except ImportError:
            return print("skipped: Python has no matplotlib (pip install matplotlib)", file=sys.stderr)
        matplotlib.use("Agg")
        cells = json.loads((EXAMPLES / "pareto.ipynb").read_text())["cells"]
        names = {}
        with tempfile.TemporaryDirectory() as dir, contextlib.chdir(dir):
            for cell in cells:
                if cell["cell_type"] == "code":
                    exec(compile("".join(cell["source"]), "pareto.ipynb", "exec"), names)
            self.assertEqual(Path("pareto.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        for profile in "5.9", "6.1":
            points = [point for point in names["points"] if point[0] == profile]
            front = names["front"](points)
            self.assertGreater(len(front), 2, "settings differ in cost and in gain")
            # Along the front, more time for kcompactd is less fragmentation.
            self.assertEqual([point[3] for point in front], sorted((point[3] for point in front), reverse=True))
            self.assertLess(len(front), len(points))

    def test_the_search_keeps_to_its_budget_or_skipped(self):
        try:
            import optuna  # noqa: F401
        except ImportError:
            return print("skipped: Python has no Optuna (pip install optuna)", file=sys.stderr)
        asked = ["--workload", "watch", "--machine", "tiny-64m", "--profile", "5.9", "--trials", "20"]
        asked += ["--figure", "fragmentation score after", "--budget"]

        def said(budget):
            command = [sys.executable, EXAMPLES / "tune.py", *asked, budget]
            return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout

        lines = said("0.5").splitlines()
        self.assertRegex(lines[0], r"^20 trials in \d+ s, [1-9]\d* of them within the budget$")
        self.assertRegex(lines[-1], r"^  lower in 10 of 10 seeds$")
        self.assertIn("nothing fits the budget", said("-1"))


if __name__ == "__main__":
    unittest.main()
