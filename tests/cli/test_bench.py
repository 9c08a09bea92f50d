"""`toolc bench`: a row for toolc and for each peer that is installed, and a plot."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolc.compiler.cli import cli
from toolc.compiler.commands import bench


def test_rows_and_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolc.compiler.commands.terminal.PATIENCE", 0.0)
    monkeypatch.setattr(bench, "_schemas", lambda: bench_schemas)
    bench_schemas = [("one", {"enum": ["a", "b"]}), ("never", {"type": "string", "pattern": "(?=a)(?!a)b", "not": {}})]
    real = bench._texts
    monkeypatch.setattr(bench, "_texts", lambda schema, *rest: real(schema, *rest) if "enum" in schema else [])
    done = CliRunner().invoke(cli, ["bench", "--texts", "2", "--plot", str(tmp_path / "p.svg"), "--json"])
    assert done.exit_code == 0 and "…" not in done.stderr, done.output  # no progress beside JSON
    rows = {row["engine"]: row for row in json.loads(done.stdout)["engines"]}
    assert rows["toolc"]["refused"] == 1 and "never" in rows["toolc"]["refusals"][0]
    assert rows["toolc"]["stopped"] == 0 and rows["toolc"]["tokens"] >= 2 and rows["toolc"]["compile_ms_p50"] > 0
    for package in ("llguidance",):
        assert (package in rows) == (find_spec(package) is not None)
    drawn = ET.parse(tmp_path / "p.svg").getroot()
    bars = [one for one in drawn.iter() if one.tag.endswith("rect")]
    assert len(bars) >= len(rows) * len(bench.COLUMNS)
