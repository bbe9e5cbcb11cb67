"""Environments of the products, made by uv and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from peers.products import Product

SYSTEM = Path("/usr/bin/python3")
CAN_LOAD = (
    "import sqlite3; raise SystemExit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
)
VERSIONS = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"


def python_of(product: Product, folder: Path) -> Path:
    """Return the product's Python, made again if the table names other versions."""
    if not product.packages:
        return Path(sys.executable)
    venv, wanted = folder / product.name, "\n".join(product.packages)
    python, installed = venv / "bin" / "python", venv / "packages.txt"
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        base = base_python(product.extensions)
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", str(base), str(venv)], check=True
        )
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", str(python), *product.packages],
            check=True,
        )
        installed.write_text(wanted, encoding="utf-8")
    return python


def base_python(extensions: bool) -> Path:
    """Return this Python, or the system's if this one cannot load needed SQLite extensions."""
    candidates = [Path(sys.executable).resolve(), SYSTEM]
    if not extensions:
        return candidates[0]
    found = next((one for one in candidates if one.exists() and _loads_extensions(one)), None)
    if found is None:
        raise SystemExit(
            "No Python here can load extensions into SQLite. Use one that was built to allow it."
        )
    return found


def versions(product: Product, python: Path) -> dict[str, str]:
    names = [package.partition("==")[0] for package in product.packages] or [product.name]
    said = subprocess.run(
        [str(python), "-c", VERSIONS, *names], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, str] = json.loads(said)
    return found


def _loads_extensions(python: Path) -> bool:
    return subprocess.run([str(python), "-c", CAN_LOAD], check=False).returncode == 0
