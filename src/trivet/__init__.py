"""Trivet: a memory for AI agents that stands on three legs.

from trivet import Trivet

with Trivet.open() as memory:
    memory.remember("The staging database listens on port 6543.")
    for hit in memory.recall("which port is staging on?").hits:
        print(hit.score, hit.content)
"""

from trivet.async_trivet import AsyncTrivet
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
)
from trivet.settings import Settings, load_settings
from trivet.trivet import Trivet
from trivet.types import Answer, Hit, Link, Memory, Remembered, Source, Stats, WhyNot

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncTrivet",
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
    "WhyNot",
    "load_settings",
]
