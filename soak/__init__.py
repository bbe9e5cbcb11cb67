"""The campaign that stays: faults of many kinds on real stores, and one list of what must hold after each.

Run it with `make soak`. It uses what the tests have: their servers, their embedder, their ways to wait.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))
