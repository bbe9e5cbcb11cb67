-- Version 6: ingested files, so that unchanged ones are not read again, and moves and deletions are
-- followed.
CREATE TABLE vault (
    name TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    options TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE vault_file (
    vault TEXT NOT NULL REFERENCES vault (name) ON DELETE CASCADE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    reader TEXT NOT NULL,
    PRIMARY KEY (vault, path)
) WITHOUT ROWID;

-- The memory's id without a foreign key, so that a purged memory stays gone.
CREATE TABLE vault_part (
    vault TEXT NOT NULL REFERENCES vault (name) ON DELETE CASCADE,
    id TEXT NOT NULL,
    path TEXT NOT NULL,
    place TEXT NOT NULL,
    content TEXT NOT NULL,
    said TEXT NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (vault, id)
) WITHOUT ROWID;

CREATE TABLE vault_link (
    vault TEXT NOT NULL REFERENCES vault (name) ON DELETE CASCADE,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (vault, source, kind, target)
) WITHOUT ROWID;
