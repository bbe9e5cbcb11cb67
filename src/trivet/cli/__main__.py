"""Runs the `trivet` program for `python -m trivet.cli`."""

import sys

from trivet.cli import main

if __name__ == "__main__":
    sys.exit(main())
