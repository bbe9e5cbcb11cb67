"""Fault campaigns on real stores, with one list of invariants checked after each fault.

Run it with `make soak`. It uses the tests' servers, embedder and ways to wait.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))
