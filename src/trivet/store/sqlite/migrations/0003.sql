-- Version 3: encrypted secrets taken out of texts, and an audit record.
CREATE TABLE secret (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    number INTEGER NOT NULL,  -- counts within a memory and kind; the placeholder in the text names both
    revision INTEGER NOT NULL,  -- in which it was first found, and in which field
    field TEXT NOT NULL,
    key TEXT NOT NULL,  -- the id of the key, never the key
    nonce BLOB NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (memory, kind, number)
);
CREATE INDEX secret_by_key ON secret (key);

-- Kept when a memory is purged. Each hash covers the previous entry, so that changes and gaps show.
CREATE TABLE audit (
    sequence INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    actor TEXT,  -- a user of a server; without one it was whoever has the file
    act TEXT NOT NULL,
    memory TEXT,
    detail TEXT NOT NULL,
    hash BLOB NOT NULL
);
