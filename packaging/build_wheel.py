"""Builds a wheel for old systems into dist/ and tries it: what `make wheel` runs.

zig's clang links against the symbols of an old glibc and brings its own C++ library, so the machine
that builds may be new. auditwheel then looks at every symbol and names the wheel after its needs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import ziglang

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "wheel"
DIST = ROOT / "dist"
GLIBC = "2.17"  # of 2014: manylinux2014


def run(*command: str | Path, **environment: str) -> None:
    print("$", *(str(word) for word in command), flush=True)
    subprocess.run([str(word) for word in command], check=True, env=os.environ | environment)


def write_tools(machine: str) -> dict[str, Path]:
    """zig's compiler, archiver and indexer as programs of their own, as CMake wants them."""
    zig = Path(ziglang.__file__).parent / "zig"
    words = {"c++": f"c++ -target {machine}-linux-gnu.{GLIBC}", "ar": "ar", "ranlib": "ranlib"}
    folder = BUILD / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in words.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{zig}" {arguments} "$@"\n')
        (folder / name).chmod(0o755)
    return {name: folder / name for name in words}


def build(machine: str) -> Path:
    """The wheel as scikit-build-core makes it."""
    tools = write_tools(machine)
    made = BUILD / "made"
    shutil.rmtree(made, ignore_errors=True)
    options = [
        f"--config-settings=cmake.define.CMAKE_{name.upper()}={tools[name]}"
        for name in ("ar", "ranlib")
    ]
    folder = f"--config-settings=build-dir={BUILD / 'cmake'}"
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-v"]
    run(*command, folder, *options, "-w", made, ROOT, CXX=str(tools["c++"]))
    (wheel,) = made.glob("*.whl")
    return wheel


def repair(wheel: Path, machine: str) -> Path:
    """The wheel in dist/, named after the oldest system that it runs on."""
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    repaired = BUILD / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    auditwheel = [sys.executable, "-m", "auditwheel"]
    run(*auditwheel, "repair", "--plat", tag, "-w", repaired, wheel)
    (made,) = repaired.glob("*.whl")
    DIST.mkdir(exist_ok=True)
    final = DIST / made.name
    shutil.move(made, final)
    run(*auditwheel, "show", final)
    return final


def try_out(wheel: Path) -> None:
    """Installs the wheel into an empty environment and trains there, without a compiler."""
    folder = BUILD / "environment"
    venv.create(folder, clear=True, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    only_binary = "--only-binary=:all:"
    run(*pip, "install", only_binary, f"{wheel}[arrow,plot]", CXX="/bin/false", CC="/bin/false")
    run(python, "-P" if sys.version_info >= (3, 11) else "-s", ROOT / "packaging" / "try_wheel.py")


def main() -> None:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        sys.exit(
            f"make wheel knows Linux on x86_64 and aarch64, this is {sys.platform} on {machine}: "
            "use cibuildwheel"
        )
    wheel = repair(build(machine), machine)
    try_out(wheel)
    print(wheel.relative_to(ROOT))


if __name__ == "__main__":
    main()
