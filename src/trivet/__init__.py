"""Trivet: a memory for AI agents that stands on three legs.

Example:
    from trivet import Trivet

    with Trivet.open() as memory:
        memory.remember("The staging database listens on port 6543.")
        for hit in memory.recall("which port is staging on?").hits:
            print(hit.score, hit.content)
"""

TYPE_CHECKING = False  # importing `typing` would cost a hook more than its own work
if TYPE_CHECKING:
    from trivet.async_trivet import AsyncTrivet
    from trivet.code.code_index import CodeIndex
    from trivet.errors import (
        Conflict,
        EmbedderError,
        Forbidden,
        InvalidInput,
        LegFailed,
        NotFound,
        RerankerError,
        SecretError,
        StoreError,
        TooMany,
        TrivetError,
        Unauthorised,
        UnknownFate,
    )
    from trivet.settings import Settings, load_settings
    from trivet.trivet import Trivet
    from trivet.types import Answer, Hit, Link, Memory, Remembered, Source, Stats, WhyNot

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncTrivet",
    "CodeIndex",
    "Conflict",
    "EmbedderError",
    "Forbidden",
    "Hit",
    "InvalidInput",
    "LegFailed",
    "Link",
    "Memory",
    "NotFound",
    "Remembered",
    "RerankerError",
    "SecretError",
    "Settings",
    "Source",
    "Stats",
    "StoreError",
    "TooMany",
    "Trivet",
    "TrivetError",
    "Unauthorised",
    "UnknownFate",
    "WhyNot",
    "load_settings",
]

_HOMES = {
    "trivet.async_trivet": ("AsyncTrivet",),
    "trivet.code.code_index": ("CodeIndex",),
    "trivet.settings": ("Settings", "load_settings"),
    "trivet.trivet": ("Trivet",),
    "trivet.types": ("Answer", "Hit", "Link", "Memory", "Remembered", "Source", "Stats", "WhyNot"),
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so a hook starts without loading the package."""
    if name not in __all__:
        raise AttributeError(f"module 'trivet' has no attribute {name!r}")
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), "trivet.errors")
    value = globals()[name] = getattr(import_module(home), name)
    # These modules have already loaded `trivet.types`.
    if home in ("trivet.async_trivet", "trivet.trivet", "trivet.types"):
        import_module("trivet.types.memories").set_notebook_renderer(_render_in_notebook)
    return value


def _render_in_notebook(kind: str, value: object) -> str:
    from importlib import import_module

    rendered: str = getattr(import_module("trivet.notebook"), kind)(value)
    return rendered


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
