"""Operations on memories. Read recall.py (the read path) and remember.py (the write path) first."""
