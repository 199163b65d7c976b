"""Sweeps on a Ray cluster: `kontig.sweep(space, RayExecutor())`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    """Carries out each call as a task of Ray, on the cluster that `ray.init` has joined, or else on this host.

    `options` are those of a Ray task, such as `num_cpus=1` and `max_retries=3`, its defaults: Ray repeats a task whose
    worker died. Cancelled calls that have not begun never do.
    """

    def __init__(self, **options: Any) -> None:
        self._task = ray.remote(_call).options(**options)

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        task = self._task.remote(call, *args, **kwargs)
        future = task.future()
        future.add_done_callback(lambda future: ray.cancel(task) if future.cancelled() else None)
        return future


def _call(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return call(*args, **kwargs)
