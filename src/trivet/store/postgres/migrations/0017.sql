-- The times that a memory's text names (search/said.py). NULL for older memories.
ALTER TABLE memory ADD COLUMN times text;
