"""Build the wheel, install it in the ways the README names, and run a user's first steps.

.venv/bin/python scripts/try_install.py                      # pip, uv and pipx
.venv/bin/python scripts/try_install.py --way pip --keep /tmp/installed
.venv/bin/python scripts/try_install.py --out docs/results/install.json

scripts/installed_checks.py has the checks: the README's tour, an MCP client, the hooks, the page,
code search. They run with an empty home and no network. The installation by pip is also measured by
size per package. It needs PyPI, so it is not part of `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHECKS = Path(__file__).with_name("installed_checks.py")
# Package indexes accept 100 MB by default; this leaves a margin.
LARGEST_WHEEL = 90 * 10**6
NOWHERE = "http://127.0.0.1:9"
# Files and bytes of each package, by the installer's lists.
SIZES = """
import json, importlib.metadata as metadata
def size(one):
    return sum(path.stat().st_size for path in map(one.locate_file, one.files or ()) if path.is_file())
print(json.dumps({one.name: size(one) for one in metadata.distributions() if one.name not in ("pip", "setuptools")}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--way", action="append", choices=tuple(WAYS), help="pip, uv or pipx; all if none is named"
    )
    parser.add_argument(
        "--keep", type=Path, help="the folder to install into; a temporary one if none"
    )
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trivet-install-") as scratch:
        folder = (arguments.keep or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        figures = tried(folder, arguments.way or list(WAYS))
    show(figures)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if figures["wheel_bytes"] > LARGEST_WHEEL:
        raise SystemExit(
            f"The wheel has {figures['wheel_bytes']:,} bytes; {LARGEST_WHEEL:,} is the bar."
        )


def tried(folder: Path, ways: list[str]) -> dict[str, Any]:
    wheel = built(folder)
    figures: dict[str, Any] = {
        "manifest": manifest(),
        "wheel_bytes": wheel.stat().st_size,
        "ways": {},
    }
    for way in ways:
        began = time.monotonic()
        python, trivet = WAYS[way](folder / way, wheel)
        seconds = round(time.monotonic() - began, 1)
        print(f"{way}: installed in {seconds} s", flush=True)
        figures["ways"][way] = {
            "install_seconds": seconds,
            "checks_seconds": checked(folder / way, python, trivet),
        }
        if way == "pip":
            figures["package_bytes"] = json.loads(told([str(python), "-I", "-c", SIZES]))
    return figures


def built(folder: Path) -> Path:
    target = folder / "wheel"
    told(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(target),
            str(ROOT),
        ]
    )
    (wheel,) = target.glob("trivet-*.whl")
    return wheel


def by_pip(folder: Path, wheel: Path) -> tuple[Path, Path]:
    told([sys.executable, "-m", "venv", str(folder)])
    told(
        [
            str(folder / "bin" / "pip"),
            "install",
            "--quiet",
            "--disable-pip-version-check",
            str(wheel),
        ]
    )
    return folder / "bin" / "python", folder / "bin" / "trivet"


def by_uv(folder: Path, wheel: Path) -> tuple[Path, Path]:
    uv = helper(folder, "uv")
    told(
        [str(uv), "tool", "install", "--quiet", "--python", sys.executable, str(wheel)],
        UV_TOOL_DIR=str(folder / "tools"),
        UV_TOOL_BIN_DIR=str(folder / "bin"),
    )
    return folder / "tools" / "trivet" / "bin" / "python", folder / "bin" / "trivet"


def by_pipx(folder: Path, wheel: Path) -> tuple[Path, Path]:
    pipx = helper(folder, "pipx")
    told(
        [str(pipx), "install", "--quiet", "--python", sys.executable, str(wheel)],
        PIPX_HOME=str(folder / "pipx"),
        PIPX_BIN_DIR=str(folder / "bin"),
        PIPX_MAN_DIR=str(folder / "man"),
    )
    return folder / "pipx" / "venvs" / "trivet" / "bin" / "python", folder / "bin" / "trivet"


WAYS: Mapping[str, Callable[[Path, Path], tuple[Path, Path]]] = {
    "pip": by_pip,
    "uv": by_uv,
    "pipx": by_pipx,
}


def helper(folder: Path, name: str) -> Path:
    own = folder / "installer"
    told([sys.executable, "-m", "venv", str(own)])
    told([str(own / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", name])
    return own / "bin" / name


def checked(folder: Path, python: Path, trivet: Path) -> dict[str, float]:
    """Return each check's time, with no access to the user's home or the network."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {
        "PATH": f"{trivet.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TRIVET_PATH": str(home / "memory.db"),
        # The check is whether it works, even on a busy machine.
        "TRIVET_HOOK_TIME_LIMIT_MS": "60000",
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
    }
    ended = subprocess.run(
        [str(python), "-I", str(CHECKS), str(trivet), str(ROOT / "README.md")],
        cwd=home, env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise SystemExit(f"{trivet}: {ended.stderr}{ended.stdout}")
    took: dict[str, float] = json.loads(ended.stdout)
    print(f"  {', '.join(f'{name} {seconds} s' for name, seconds in took.items())}", flush=True)
    return took


def told(command: list[str], **variables: str) -> str:
    """Run a command without PYTHONPATH, so it finds nothing of the repository."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    } | variables
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
        )
    return ended.stdout


def manifest() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    return {
        "command": "python scripts/try_install.py",
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, shared",
    }


def show(figures: Mapping[str, Any]) -> None:
    print(f"wheel: {figures['wheel_bytes'] / 1e6:.1f} MB")
    sizes = figures.get("package_bytes", {})
    if sizes:
        print(f"installed by pip: {sum(sizes.values()) / 1e6:.0f} MB in {len(sizes)} packages")
        for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:15]:
            print(f"  {size / 1e6:6.1f} MB  {name}")


if __name__ == "__main__":
    main()
