"""Start a real `vllm serve` for tests, and stop it.

Leaves out   what is asked of it: see the tests.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 1800
"""A start takes half a minute on a quiet machine with two cores, and minutes more where no kernels are compiled yet."""
ANSWER_S = 900
"""No request waits longer, also on a machine that has other things to do."""
INTERPRETED = Path(__file__).parent / "interpreted"


@dataclass
class Server:
    """A server that answers.

    Attributes:
        url: of its root.
        log: what it printed.
        process: the front end, or what started several.
    """

    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def post(self, path: str, body: Any, timeout: float = ANSWER_S) -> tuple[int, Any]:
        """Status and body of the answer to a JSON body."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def chat(self, text: str, **more: Any) -> tuple[int, Any]:
        """Status and body of the answer to one message."""
        body = {"model": "small", "messages": [{"role": "user", "content": text}], "temperature": 0, **more}
        return self.post("/v1/chat/completions", body)

    def metrics(self) -> dict[str, float]:
        """The samples of its Prometheus endpoint by name and labels."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        return sum(value for shown, value in self.metrics().items() if shown.split("{")[0] == name)

    def children(self, name: str) -> list[int]:
        """Processes of the server whose command line holds a name."""
        found, new = [], [self.process.pid]
        while new:
            shown = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", ",".join(map(str, new))], capture_output=True, text=True
            )
            new = [int(pid) for pid in shown.stdout.split()]
            found += new
        return [pid for pid in found if name in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(v2: bool = False, **more: str) -> dict[str, str]:
    """Variables of an engine on two cores without a GPU; `v2`: for model runner V2, by triton's interpreter."""
    found = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TOOLC_COMPILE_SECONDS": "600",  # what is compiled late is left to the engine
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        **more,
    }
    if v2:
        path = [str(INTERPRETED), *filter(None, [found.get("PYTHONPATH")])]
        found |= {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(path)}
    return found


@contextmanager
def serving(
    model: Path,
    log: Path,
    variables: dict[str, str],
    arguments: Sequence[str] = (),
    scripts: Path = Path(sys.executable).parent,
) -> Iterator[Server]:
    """A server of a model, by `vllm` of a folder of scripts; stopped at the end."""
    port = free_port()
    command = [str(scripts / "vllm"), "serve", str(model), "--served-model-name", "small"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "16", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=log.parent, start_new_session=True
        )
    server = Server(f"http://127.0.0.1:{port}", log, process)
    try:
        _wait(server)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it may have left
        except ProcessLookupError:
            pass
        process.wait()


def _wait(server: Server) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if server.process.poll() is not None:
            raise RuntimeError(f"vLLM ended at its start:\n{server.log.read_text(errors='replace')[-4000:]}")
        try:
            urllib.request.urlopen(server.url + "/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"vLLM did not start in {START_S} s:\n{server.log.read_text(errors='replace')[-4000:]}")
