"""Where the store of each tenant is."""

from __future__ import annotations

from pathlib import Path

from trivet.settings import Settings


def tenant_file(settings: Settings) -> Path:
    """The first tenant has the file that the settings name; each other one has a file of its own beside it."""
    first = Path(settings.path).expanduser()
    if settings.tenant == "default":
        return first
    return first.with_name(f"{first.stem}.tenants") / f"{settings.tenant}{first.suffix or '.db'}"
