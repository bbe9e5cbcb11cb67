"""What can be done with a memory. Read recall.py (the read path) and remember.py (the write path) first."""
