"""Optional packages that parts of the lab need."""

from __future__ import annotations

from importlib.util import find_spec

from trivet.errors import TrivetError

MEASURING = ("scipy",)
PLOTTING = ("matplotlib",)


def need(*packages: str) -> None:
    """Raise an error that says what to install. Call this before long work."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise TrivetError(f"Missing: {', '.join(missing)}. Install with: pip install 'trivet[lab]'")
