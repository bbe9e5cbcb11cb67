-- Version 10: the feedback that a laptop's server knows. NULL if it does not know the verdict yet.
ALTER TABLE feedback ADD COLUMN told TEXT;
