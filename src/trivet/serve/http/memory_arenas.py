"""How much memory the threads of a server set aside.

The C library of Linux (glibc) gives threads arenas of their own, up to eight for each core, and what is freed in one is
not used by another. A server has some twenty threads, of which Python lets one run at a time: they need few.
"""

from __future__ import annotations

import ctypes
import os

ARENAS = 2
# In malloc.h.
_M_ARENA_MAX = -8
# Whoever sets this has decided.
_OWN = "MALLOC_ARENA_MAX"


def share_arenas() -> bool:
    """Whether the C library has such arenas, and now keeps to few. To be called before threads are started."""
    if os.name != "posix" or _OWN in os.environ:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_M_ARENA_MAX, ARENAS))
