"""Count what toolc does in a serving engine, for its Prometheus endpoint.

    toolc:admissions_total{outcome}    requests that named a bundle: admitted, refused
    toolc:device_bundles, toolc:device_rows, toolc:device_bytes    what the workers hold on their devices
    toolc:failed_requests              requests whose constraint failed in a worker

A front end counts in the registry of `prometheus_client`, in several processes if $PROMETHEUS_MULTIPROC_DIR is set, as
the engine sets it. A worker has no endpoint: it writes its numbers into the engine's folder, and the front ends show
the sum as they were at the last admission.

Leaves out   requests that toolc chooses bundles for: they are counted where that is done.
Invariants   without `prometheus_client` nothing is counted; nothing fails because of a count.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .admitted import engine_folder

if TYPE_CHECKING:
    from ..device.arena import Arena

EVERY_S = 1.0
"""Between two readings of the workers' numbers."""
NAMES = ("device_bundles", "device_rows", "device_bytes", "failed_requests")
HELP = ("Bundles on the devices.", "Rows of masks on the devices.", "Bytes of tables on the devices.",
        "Requests whose constraint failed in a worker.")  # fmt: skip


class _Shown:
    """The metrics of a front end, made at first use."""

    def __init__(self) -> None:
        self._admissions: Any = None
        self._gauges: list[Any] = []
        self._read = 0.0

    def admission(self, outcome: str) -> None:
        if self._admissions is None:
            try:
                from prometheus_client import Counter, Gauge
            except ImportError:
                return
            self._admissions = Counter("toolc:admissions", "Requests that named a bundle.", ["outcome"])
            self._gauges = [
                Gauge(f"toolc:{name}", text, multiprocess_mode="mostrecent") for name, text in zip(NAMES, HELP)
            ]
        self._admissions.labels(outcome).inc()
        now = time.monotonic()
        if now - self._read > EVERY_S:
            self._read = now
            for gauge, value in zip(self._gauges, _sums(engine_folder())):
                gauge.set(value)


def _sums(folder: Path) -> list[int]:
    """The workers' numbers, added."""
    sums = [0] * len(NAMES)
    for path in folder.glob("worker-*.json"):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # it was just replaced
            continue
        sums = [a + b for a, b in zip(sums, values)]
    return sums


class Worker:
    """The numbers of a worker.

    Attributes:
        failed: requests whose constraint failed.
    """

    def __init__(self) -> None:
        self.failed = 0
        self._held = (0, 0, 0)

    def fail(self) -> None:
        """Count a request whose constraint failed."""
        self.failed += 1
        self._write()

    def hold(self, arena: Arena) -> None:
        """Note what the device holds; written when it changes."""
        size = sum(table.numel() * table.element_size() for table in arena.table.values())
        held = (sum(bundle is not None for bundle in arena.bundles), int(arena.table["dense"].shape[0]), size)
        if held != self._held:
            self._held = held
            self._write()

    def _write(self) -> None:
        path = engine_folder() / f"worker-{os.getpid()}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps([*self._held, self.failed]), encoding="utf-8")
        os.replace(new, path)


_shown = _Shown()
admission = _shown.admission
worker = Worker()
