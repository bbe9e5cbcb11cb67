from __future__ import annotations

from importlib.util import find_spec

from trivet.errors import TrivetError

# What the lab needs beyond Trivet itself: for comparisons, and for the plots of a report.
MEASURING = ("scipy",)


PLOTTING = ("matplotlib",)


def need(*packages: str) -> None:
    """Raises an error that says what to install, if a package is missing. Commands call it before their long work."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise TrivetError(
            f"This needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed here. "
            "Install with: pip install 'trivet[lab]'"
        )
