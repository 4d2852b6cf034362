"""Spark itself: two sessions in a process, `local[2]`, and a cluster that loses a worker.

Java is slow to start and to warm up, so there are two tests, each of as many things as one process
can show; `make spark-rounds` has more.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from cluster import Cluster, light, started
from spark_cases import WARNINGS, call, engine_or_skip, outputs, write_inputs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

pytestmark = WARNINGS

OPTIONS: Final = ("--similarity", "0.5", "--keep", "longest", "--clusters")

SESSIONS: Final = """
import sys
from neardup import spark
from neardup.cli import app
texts = [(0, "a harbour opened on monday"), (1, "A harbour opened, on Monday!"), (2, "other")]
with spark.open_session("sail"):
    with spark.open_session("local[2]") as one, spark.open_session("sail") as other:
        for session in (one, other, one):
            frame = session.createDataFrame(texts, "id long, text string")
            assert spark.fingerprints(frame).where("fingerprint = 0").count() == 0
    app(sys.argv[1:], standalone_mode=False)
"""


def test_spark_beside_sail_in_one_process_writes_the_files_of_one_machine(tmp_path: Path) -> None:
    engine_or_skip("local[2]")
    write_inputs(tmp_path)
    call(tmp_path, "in*.jsonl", "-o", "here/", *OPTIONS, "here.csv")
    command = ["dedup", "in*.jsonl", "-o", "there/", *OPTIONS, "there.csv"]
    done = subprocess.run(
        [sys.executable, "-c", SESSIONS, *command, "--engine", "spark", "--master", "local[2]"],
        cwd=tmp_path, env=light(tmp_path / "java"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("read "), "Java speaks of its start"
    assert outputs(tmp_path, "there") == outputs(tmp_path, "here")


def test_a_cluster_that_loses_a_worker_writes_the_files_of_one_machine(
    tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    engine_or_skip("spark://127.0.0.1:7077")
    folder = tmp_path / "files"
    folder.mkdir()
    write_inputs(folder)
    call(folder, "in*.jsonl", "-o", "here/", *OPTIONS, "here.csv")
    with started(tmp_path / "cluster") as cluster:
        command = [sys.executable, "-m", "neardup", "dedup", "in*.jsonl", "-o", "there/", *OPTIONS,
                   "there.csv", "--engine", "spark", "--master", cluster.url]  # fmt: skip
        running = subprocess.Popen(
            command, cwd=folder, env=cluster.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        while running.poll() is None and len(list(folder.glob(".neardup-*/work/*"))) < 4:
            time.sleep(0.05)
        assert running.poll() is None, running.stdout.read() if running.stdout else ""
        record_property("killed after", [x.name for x in folder.glob(".neardup-*/work/*")])
        Cluster.kill(cluster.workers[0])
        told, _ = running.communicate(timeout=500)
    assert running.returncode == 0, told
    assert outputs(folder, "there") == outputs(folder, "here")
    assert not list(folder.glob(".neardup-*"))
