-- Version 5: requests to a server that must act once, and their answers.
CREATE TABLE once (
    name BLOB PRIMARY KEY,  -- a digest of the API key and the Idempotency-Key that came with it
    request BLOB NOT NULL,  -- a digest of what was asked
    taken_at REAL NOT NULL,
    answer BLOB  -- sealed with a key that is not stored; NULL while it is being worked on
) WITHOUT ROWID;
CREATE INDEX once_by_time ON once (taken_at);
