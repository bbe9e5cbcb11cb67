"""The fusion methods there are, by name."""

from __future__ import annotations

from trivet.errors import InvalidInput
from trivet.search.fuse.convex import CONVEX, DBSF, RSF, TM2C2
from trivet.search.fuse.learned import LEARNED
from trivet.search.fuse.method import Method
from trivet.search.fuse.rrf import RRF

_methods: dict[str, Method] = {method.name: method for method in (RRF, CONVEX, RSF, DBSF, TM2C2, LEARNED)}


def register(method: Method) -> None:
    """Add a method under its name; a name is given once, so that a recorded recipe keeps its meaning."""
    if method.name in _methods:
        raise InvalidInput(f"there is a fusion method {method.name!r} already; choose another name")
    _methods[method.name] = method


def method_named(name: str) -> Method:
    """Look a method up, or say which ones there are."""
    if name not in _methods:
        raise InvalidInput(f"there is no fusion method {name!r}; known are {', '.join(_methods)}")
    return _methods[name]


def parameter_names() -> frozenset[str]:
    """The option names that belong to some method, and therefore can never be the weight of a leg."""
    return frozenset(name for method in _methods.values() for name in method.parameters)
