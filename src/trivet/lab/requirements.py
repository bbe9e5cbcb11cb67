"""What the lab takes beyond Trivet itself, asked for before long work starts and not after it."""

from __future__ import annotations

from importlib.util import find_spec

from trivet.errors import TrivetError

MEASURING = ("scipy",)
PLOTTING = ("matplotlib",)


def need(*packages: str) -> None:
    """Raises an error that says what to install, if one of the packages is not there."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise TrivetError(
            f"This needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed here. "
            "Install with: pip install 'trivet[lab]'"
        )
