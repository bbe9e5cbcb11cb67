"""Frameworks with an event loop: the store is asked in threads, so that no call holds up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# A fixed set of threads, because a store keeps a connection for each thread it ever saw.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="trivet-adapter")


async def in_thread(function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function)
