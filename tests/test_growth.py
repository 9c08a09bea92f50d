"""benchmarks/growth.py runs through, small, and its curves stand where they should."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("resource", reason="this system counts no memory of processes")

from benchmarks import growth
from toolc.runtime.speculate.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw


def test_points_tables_and_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = [{"const": 1}, {"enum": ["no", "yes"]}, {"type": "string", "pattern": "(a"}, {"type": "boolean"}]
    cases = tmp_path / "cases.jsonl"
    cases.write_text("".join(json.dumps({"id": str(n), "schema": one}) + "\n" for n, one in enumerate(schemas)))
    growth.main(["--tools", "1", "3", "--cases", str(cases), "--count", "3", "--out", str(tmp_path / "out")])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line.get("tools", line.get("id")) for line in lines] == [None, 1, 3, "3", "1", "2"]
    assert ["refused" in line for line in lines[1:]] == [False, False, False, False, True]
    assert lines[1]["bundle"] < lines[2]["bundle"] and all(line["peak"] > 1e6 for line in lines[1:])
    assert len(list((tmp_path / "out").glob("*.svg"))) == 6


def test_tools_of_a_small_point_are_the_first_of_a_larger() -> None:
    assert growth.tool(2) == growth.tool(2) != growth.tool(3)
    assert growth.tool(2, seed=1) != growth.tool(2)


def test_a_process_that_dies_is_a_point() -> None:
    def die() -> growth.Compiled:
        raise SystemExit(9)

    assert growth.measure(die, 1.0) == {"failed": "the process ended with 9"}


def test_powers_of_ten_are_evenly_apart() -> None:
    drawn = ElementTree.fromstring(draw("", "", "", {"a": [(1, 0.1), (10, 10), (100, 1000)]}, powers=True))
    path = drawn.find("{http://www.w3.org/2000/svg}polyline").get("points")
    middle = f"{(LEFT + WIDTH - RIGHT) / 2:.1f},{(TOP + HEIGHT - BOTTOM) / 2:.1f}"
    assert path.split() == [f"{LEFT:.1f},{HEIGHT - BOTTOM:.1f}", middle, f"{WIDTH - RIGHT:.1f},{TOP:.1f}"]
