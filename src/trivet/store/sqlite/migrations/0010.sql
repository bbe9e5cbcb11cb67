-- Version 10: what the server of a laptop was told of a memory's use. NULL where it does not know the verdict yet.
ALTER TABLE feedback ADD COLUMN told TEXT;
