"""Many threads can use a new type for the first time; plain msgspec crashes on this."""

from __future__ import annotations

import subprocess
import sys

AT_ONCE = """
from __future__ import annotations
import sys, threading
from typing import Annotated, Literal, Optional
import msgspec
from msgspec import Meta
from trivet.common.threads import prepared_type

sys.setswitchinterval(1e-6)
KIND = '''
class Inner(msgspec.Struct, frozen=True):
    x: Annotated[int, Meta(ge=0)]
    y: Annotated[str, Meta(max_length=5)] | None = None
    z: Literal["a", "b"] = "a"
class Outer(msgspec.Struct):
    first: list[Inner]
    second: Optional[Annotated[str, Meta(max_length=50)]] = None
    third: dict[str, Inner] = {}
    fourth: tuple[Inner, ...] = ()
'''

def read(kind, begin):
    begin.wait()
    msgspec.json.decode(b'{"first": [{"x": 1}], "third": {"k": {"x": 2}}, "fourth": [{"x": 1}]}', type=prepared_type(kind))

for turn in range(60):
    exec(KIND)
    begin = threading.Barrier(6)
    threads = [threading.Thread(target=read, args=(Outer, begin)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_type_is_inspected_by_one_thread() -> None:
    assert (
        subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True).returncode
        == 0
    )
