"""Spark itself: `local[2]` beside Sail, and a cluster that loses a worker, in one process.

Java is slow to start and to warm up, so there is one test, of as many things as one process can
show; `make spark-rounds` has more.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from cluster import Cluster, started
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


def test_beside_sail_a_cluster_that_loses_a_worker_writes_the_files_of_one_machine(
    tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    engine_or_skip("local[2]")
    folder = tmp_path / "files"
    folder.mkdir()
    write_inputs(folder)
    call(folder, "in*.jsonl", "-o", "here/", *OPTIONS, "here.csv")
    with started(tmp_path / "cluster") as cluster:
        command = ["dedup", "in*.jsonl", "-o", "there/", *OPTIONS, "there.csv", "--engine", "spark",
                   "--master", cluster.url]  # fmt: skip
        running = subprocess.Popen(
            [sys.executable, "-c", SESSIONS, *command],
            cwd=folder, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        while running.poll() is None and len(list(folder.glob(".neardup-*/work/*"))) < 4:
            time.sleep(0.05)
        assert running.poll() is None, running.stderr.read() if running.stderr else ""
        record_property("killed after", [x.name for x in folder.glob(".neardup-*/work/*")])
        Cluster.kill(cluster.workers[0])
        _, message = running.communicate(timeout=500)
    assert running.returncode == 0, message
    assert message.startswith("read "), "Java speaks of its start, or of its loss"
    assert outputs(folder, "there") == outputs(folder, "here")
    assert not list(folder.glob(".neardup-*"))
