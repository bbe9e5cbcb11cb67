"""`python -m trivet.cli` is the same as `trivet`."""

import sys

from trivet.cli import main

if __name__ == "__main__":
    sys.exit(main())
