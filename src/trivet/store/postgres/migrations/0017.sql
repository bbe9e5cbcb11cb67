-- The times that a memory's text names, read when it is written (search/said.py). NULL in memories of before.
ALTER TABLE memory ADD COLUMN times text;
