"""Fail if files of the package import each other, imports inside functions included.

Imports for types alone (`if TYPE_CHECKING:`) may remain.
"""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter

import grimp


def main() -> int:
    """Print one circle of imports, if there is any, and return the exit status."""
    graph = grimp.build_graph("trivet", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        print("These files import each other:", " <- ".join(error.args[1]), file=sys.stderr)
        return 1
    print(f"No two of {len(imports)} files import each other.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
