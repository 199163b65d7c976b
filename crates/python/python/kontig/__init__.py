"""Linux's page allocator and compaction on a simulated machine.

`run` carries out one workload or experiment, `sweep` every combination of a space of parameters, on any
`concurrent.futures.Executor`. Both return `Tables`: Arrow tables whose columns docs/experimenter/tables.md describes.
The same parameters give the same tables, byte for byte, wherever and in whatever order the runs are carried out.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from . import _kontig
from ._kontig import Table, Tables

__all__ = ["Table", "Tables", "run", "sweep"]

#: The parameters of a space. Each may have one value or several.
PARAMETERS = ("workload", "machine", "profile", "switch", "set", "with", "seed")


def run(
    workload: str,
    *,
    machine: str | None = None,
    profile: str | None = None,
    switch: str | Iterable[str] = (),
    set: Mapping[str, int | str] | None = None,
    with_: Mapping[str, int | float | str] | None = None,
    seed: int = 1,
) -> Tables:
    """Runs a workload or an experiment, by name or file, as `kontig run` does.

    Without `machine` and `profile` they are the workload's own. `switch` names patches on top of the profile, `set` has
    values of sysctls, and `with_` values of the workload's parameters. Raises ValueError if there is no such thing, and
    RuntimeError if the host lacks the memory.
    """
    space = {"workload": workload, "machine": machine, "profile": profile, "switch": switch, "set": set}
    return sweep(space | {"with": with_, "seed": seed})


def sweep(space: Mapping[str, Any], executor: Executor | None = None) -> Tables:
    """Runs every combination of a space's parameters.

    A space has the parameters of `run`, `with_` as "with"; `machine`, `profile`, `seed` and each value of `set` and
    `with` may be a list:

        {"workload": "heap", "profile": ["6.1", "7.2"], "set": {"vm.compaction_proactiveness": [0, 20, 60]},
         "seed": range(1, 6)}

    `executor` is any `concurrent.futures.Executor`; without one, threads use all processors of this host. What it is
    given are bytes that need no file, so its processes may be on other hosts with the same version of kontig.
    """
    cells, notes = _kontig.cells(json.dumps(_normal(space)))
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if executor is not None:
        return _tables(executor, cells)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return _tables(threads, cells)


def _tables(executor: Executor, cells: list[bytes]) -> Tables:
    futures = deque(executor.submit(_run_cell, cell) for cell in cells)
    gathering = _kontig.Gathering()
    try:
        # Each result is let go of once it is in the tables.
        for cell in cells:
            gathering.add(cell, futures[0].result())
            futures.popleft()
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return gathering.tables()


def _run_cell(cell: bytes) -> bytes:
    # A function of this module, so that processes can be sent its name.
    return _kontig.run_cell(cell)


def _normal(space: Mapping[str, Any]) -> dict[str, Any]:
    """The space with a list of values for every parameter."""
    unknown = [name for name in space if name not in PARAMETERS]
    if unknown:
        raise ValueError(f"unknown parameter {unknown[0]!r} of a space; known: {', '.join(PARAMETERS)}")
    if not isinstance(space.get("workload"), str):
        raise ValueError("a space has a 'workload': the name of one, or a file")

    def assigned(name: str) -> list[list[Any]]:
        return [[of, [str(value) for value in _values(values)]] for of, values in (space.get(name) or {}).items()]

    return {
        "workload": space["workload"],
        "machine": [str(value) for value in _values(space.get("machine"))],
        "profile": [str(value) for value in _values(space.get("profile"))],
        "switch": [str(value) for value in _values(space.get("switch"))],
        "set": assigned("set"),
        "with": assigned("with"),
        "seed": [int(value) for value in _values(space.get("seed", 1))],
    }


def _values(given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, (str, bytes, int, float)):
        return [given]
    return list(given)
