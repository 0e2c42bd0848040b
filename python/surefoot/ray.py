"""Ray: workers of a search as tasks on a cluster."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from surefoot.study import Study
from surefoot.workers import MAX_RESTARTS, Job, end_worker, run_trial, unique_name

POLL = 1.0
"""Seconds between two checks of a worker for a request to stop."""


class RayPool:
    """Workers as tasks of a Ray cluster. A task that is lost with its node is started again on another one.

    Args:
        job: The search.
        study: Its study.
        count: Number of tasks.
        on: ``"ray"`` for the cluster of this process or a new one on this machine, or the address ``ray://HOST``.
        resources: ``num_cpus`` and ``num_gpus`` of a task.
        deadline: End of the time budget, by ``time.monotonic``.
    """

    def __init__(
        self, job: Job, study: Study, count: int, on: str, resources: dict[str, float], deadline: float | None
    ) -> None:
        if not ray.is_initialized():
            # Tasks import the package even if only this process has it in its path.
            here = os.pathsep.join(filter(None, sys.path))
            environment = {"env_vars": {"PYTHONPATH": here}}
            ray.init(None if on == "ray" else on, runtime_env=environment, log_to_driver=False)
        hosts = {it["NodeManagerHostname"] for it in ray.nodes() if it["Alive"]}
        if len(hosts) > 1 and not job.store.startswith("postgres"):
            raise ValueError(
                f"the cluster has {len(hosts)} machines, which do not share {job.store}; pass store=\"postgres://...\""
            )
        self._job = job
        self._study = study
        self._deadline = deadline
        self._task = ray.remote(_work).options(max_retries=0, **resources)
        # On the node of this process: if another node had it, losing that node would end the search.
        this_node = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self._flag: Any = ray.remote(_Flag).options(num_cpus=0, scheduling_strategy=this_node).remote()
        self._workers: dict[Any, str] = {}
        self._restarts = 0
        self._is_stopping = False
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        name = unique_name()
        left = None if self._deadline is None else max(0.001, self._deadline - time.monotonic())
        self._workers[self._task.remote(self._job, name, left, self._flag)] = name

    def poll(self) -> bool:
        """Replaces lost workers. Returns false when all have ended."""
        ended, _ = ray.wait(list(self._workers), num_returns=len(self._workers), timeout=0)
        for task in ended:
            name = self._workers.pop(task)
            try:
                ray.get(task)
            except ray.exceptions.RayTaskError as error:
                raise RuntimeError(str(error.cause)) from None
            except ray.exceptions.RayError as error:
                numbers = self._study.core.mark_dead(name)
                running = "".join(f" at trial {number}" for number in numbers)
                print(f"surefoot: a worker was lost{running}: {type(error).__name__}", file=sys.stderr)
                if self._restarts == MAX_RESTARTS:
                    raise RuntimeError(f"{MAX_RESTARTS} workers were lost") from None
                if not self._is_stopping:
                    self._restarts += 1
                    self._start()
        return bool(self._workers)

    def stop(self) -> None:
        """Asks workers to end after their trials, or after their epochs if trials can resume."""
        self._is_stopping = True
        self._flag.set.remote()

    def close(self) -> None:
        """Ends the remaining workers and returns their trials to the store."""
        self.stop()
        if self._workers and self._job.resumes:
            with contextlib.suppress(KeyboardInterrupt):
                ray.wait(list(self._workers), num_returns=len(self._workers))
        for task, name in self._workers.items():
            ray.cancel(task, force=False)
            with contextlib.suppress(ray.exceptions.RayError):
                ray.get(task, timeout=30)
            # Releases the trial of a task that did not end in time.
            self._study.core.mark_dead(name)
        self._workers.clear()
        ray.kill(self._flag)


class _Flag:
    """Actor with the request to stop. It ends with the process that started the search."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


def _work(job: Job, name: str, left: float | None, flag: Any) -> None:
    """A task: runs trials until there are no more."""
    worker = job.worker(name, left)
    is_over = is_stopping = is_busy = False

    def follow() -> None:
        nonlocal is_stopping
        while not is_over:
            try:
                is_stopping = ray.get(flag.is_set.remote())
            except ray.exceptions.RayError:
                # The process that started the search has died.
                is_stopping = True
            if is_stopping and (job.resumes or not is_busy):
                worker.stop()
            time.sleep(POLL)

    threading.Thread(target=follow, daemon=True).start()
    core = None
    try:
        while not is_stopping and (core := worker.next_trial()) is not None:
            is_busy = True
            run_trial(job, worker, core)
            is_busy = False
        worker.close()
    except BaseException:
        end_worker(worker, core)
        raise
    finally:
        is_over = True
