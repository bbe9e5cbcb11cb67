"""The contract: every verb with its parameters, bounds, defaults and texts.

All surfaces (Python, command line, MCP, HTTP, docs) derive from it.
"""

from trivet.contract.parameters import *  # noqa: F403 - the types of parameters, by their names
from trivet.contract.parameters import check, describe, json_schema, request_of
from trivet.contract.verb import (
    VERBS,
    Need,
    Parameters,
    Request,
    Route,
    Tool,
    Verb,
    given,
    verb,
    verb_of,
)
from trivet.contract.verbs import *  # noqa: F403 - the requests, by their names

__all__ = [
    "VERBS",
    "Need",
    "Parameters",
    "Request",
    "Route",
    "Tool",
    "Verb",
    "check",
    "describe",
    "given",
    "json_schema",
    "request_of",
    "verb",
    "verb_of",
]
