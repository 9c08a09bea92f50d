"""The same on a Ray cluster of two nodes on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolc.compiler.cli import cli
from toolc.runtime import open_store

ray = pytest.importorskip("ray", reason="the package ray is not installed")
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="this ray has no cluster for tests")


@pytest.fixture
def address() -> Iterator[str]:
    cluster = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False},
    )
    cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
def test_two_nodes(address: str, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.json").write_text(json.dumps({"const": number}))
    (tmp_path / "bad.json").write_text("{")
    command = ["compile", str(tmp_path), "--store", str(tmp_path / "s"), "--ray", address, "--json"]
    done = CliRunner().invoke(cli, command)
    report = json.loads(done.stdout)
    assert [report[word] for word in ("compiled", "reused", "refused", "failed")] == [6, 0, 1, 0], report
    store = open_store(tmp_path / "s")
    assert len(store.list()) == 6 and all(store.get(row.key) for row in store.list())
    (tmp_path / "bad.json").unlink()
    assert json.loads(CliRunner().invoke(cli, command).stdout)["reused"] == 6
