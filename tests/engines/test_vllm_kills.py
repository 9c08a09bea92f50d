"""Kill -9 of a process of vLLM: vLLM ends then, with toolc and without; nothing is left behind, and it can begin again.

Source       vLLM 0.32: v1/utils.py:585 (`wait_for_completion_or_failure`: a front end that dies ends the others);
             v1/executor/multiproc_executor.py:308-325 and v1/engine/core_client.py:814 (a worker that dies ends the
             engine, and the front ends with it).
"""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .serving import ANSWER_S, Server, environment, serving

TOOLS = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
ARGUMENTS = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--api-server-count", "2"]

pytestmark = pytest.mark.slow


def status(server: Server, number: int) -> int:
    """Of an answer to a request that has to call a tool; 0 if the connection was lost."""
    try:
        return server.chat(f"{number}?", tools=TOOLS, tool_choice="required", max_tokens=100, temperature=1.0)[0]
    except OSError:
        return 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("plugins", ["toolc", "none"])
@pytest.mark.parametrize("victim", ["VLLM::Worker", "VLLM::APIServer"])
def test_a_process_is_killed(model: Path, tmp_path: Path, victim: str, plugins: str) -> None:
    variables = environment(TOOLC_STORE=str(tmp_path / "store"), VLLM_PLUGINS=plugins)
    with serving(model, tmp_path / "log.txt", variables, ARGUMENTS) as server:
        assert status(server, 0) == 200
        every = server.children("")
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(status, server, number) for number in range(8)]
            time.sleep(1)
            os.kill(server.children(victim)[0], signal.SIGKILL)
            assert {one.result(ANSWER_S) for one in waiting} <= {0, 200, 500, 503}
        server.process.wait(ANSWER_S)
        until = time.monotonic() + 120
        while left := [pid for pid in every if alive(pid)]:
            assert time.monotonic() < until, left
            time.sleep(0.5)
    if plugins == "toolc":
        with serving(model, tmp_path / "again.txt", variables, ARGUMENTS) as again:
            assert status(again, 1) == 200
            assert again.metrics()['toolc:requests_total{outcome="held"}'] == 1
