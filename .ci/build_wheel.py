"""Build the wheel, with compiled kernels in it, into dist/; run it with the Python that the wheel is for.

    python .ci/build_wheel.py

The wheel of the sources alone runs everywhere, and compiles its kernels on each machine: minutes. This one has them as
machine code (runtime/jit/shipped.py), so its name has the version of Python and the system.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Build in a folder apart, with the newest versions of what toolc needs, as a user gets them."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        python = place / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

        def run(*command: str | Path) -> None:
            subprocess.run([python, "-m", *command], check=True, cwd=ROOT)

        pip = ("pip", "--disable-pip-version-check", "-q")
        for left_over in [ROOT / "build" / "lib", *(ROOT / "build").glob("bdist.*")]:
            shutil.rmtree(left_over, ignore_errors=True)
        run(*pip, "wheel", "--no-deps", "-w", place, ROOT)
        (plain,) = place.glob("toolc-*.whl")
        run(*pip, "install", "--no-compile", plain, "wheel")
        run("wheel", "unpack", "-d", place / "unpacked", plain)
        (content,) = (place / "unpacked").iterdir()
        run("toolc.compiler.cli", "warmup", "--ship-into", content / "toolc" / "runtime" / "jit" / "shipped")
        plain.unlink()
        run("wheel", "pack", "-d", place, content)
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = platform.replace("linux_", "manylinux_2_17_")  # kernels call nothing but numba and Python
        version = f"cp{sys.version_info.major}{sys.version_info.minor}"
        tags = ("--python-tag", version, "--abi-tag", "none", "--platform-tag", platform)
        run("wheel", "tags", "--remove", *tags, plain)
        (built,) = place.glob("toolc-*.whl")
        for older in (ROOT / "dist").glob("toolc-*.whl"):
            older.unlink()
        (ROOT / "dist").mkdir(exist_ok=True)
        shutil.copy(built, ROOT / "dist")
        print(f"dist/{built.name}")


if __name__ == "__main__":
    main()
