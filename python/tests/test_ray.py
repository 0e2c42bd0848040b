"""``surefoot.tune(..., on="ray")``, on a cluster of two nodes on this machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot import Study, StudyTrial, Trial


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=2)
    cluster.connect()
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    os.environ["PYTHONPATH"] = before


def test_a_search_on_ray_stops_cleanly(cluster: Any, tmp_path: Path) -> None:
    def objective(trial: Trial) -> float:
        time.sleep(0.2)
        return trial.suggest_float("x", 0, 1)

    def callback(study: Study, trial: StudyTrial) -> None:
        if trial.number >= 4:
            study.stop()

    study = surefoot.tune(objective, workers=2, on="ray", runs=tmp_path, callbacks=[callback])
    assert 5 <= len(study.trials) < 30
    assert {it.state for it in study.trials} == {"complete"}


def test_trials_of_a_lost_node_continue_on_another(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def objective(trial: Trial) -> None:
        x = trial.suggest_float("x", 0, 1)
        done = (trial.restore() or {"done": 0})["done"]
        for epoch in trial.epochs(8):
            time.sleep(0.1)
            done += 1
            assert done == epoch, "continued from the checkpoint"
            trial.report(x + 1 / epoch, epoch)
            trial.checkpoint(done=done)
            if trial.should_stop():
                return

    def kill(study: Study, trial: StudyTrial) -> None:
        nodes = list(cluster.worker_nodes)
        if trial.number >= 3 and nodes:
            cluster.remove_node(nodes[0], allow_graceful=False)

    study = surefoot.tune(objective, trials=8, workers=3, resume=True, on="ray", runs=tmp_path, callbacks=[kill])
    assert "a worker was lost at trial" in capsys.readouterr().err
    assert {it.state for it in study.trials} <= {"complete", "paused"}, "every trial is accounted for"
    assert 64 <= sum(it.epochs for it in study.trials) <= 72


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="on must be 'ray'"):
        surefoot.tune(lambda trial: 1.0, trials=1, on="dask", runs=tmp_path, name="it")
