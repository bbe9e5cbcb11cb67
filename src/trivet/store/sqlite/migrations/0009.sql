-- Version 9: stores that follow each other, all empty in a store that never joined another one. A
-- revision's name on every machine, its base, and its author (NULL: the memory's owner).
ALTER TABLE revision ADD COLUMN rev TEXT;
ALTER TABLE revision ADD COLUMN base TEXT;
ALTER TABLE revision ADD COLUMN author TEXT;

-- An edit that clashed with the head, kept outside the history until somebody resolves it.
CREATE TABLE branch (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    rev TEXT NOT NULL,
    base TEXT,
    author TEXT,
    changed_at TEXT NOT NULL,
    action TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    waiting INTEGER NOT NULL,  -- 1: nobody has resolved it yet; 2: not yet sent by its laptop
    terms TEXT NOT NULL,  -- its words, so that recall finds the memory by them too
    PRIMARY KEY (memory, rev)
) WITHOUT ROWID;

-- Purged memories, kept forever, and when laptops were notified, on both sides. `owner` was the
-- memory's owner.
CREATE TABLE tombstone (
    id TEXT PRIMARY KEY,
    memory INTEGER NOT NULL,
    owner TEXT NOT NULL,
    seq INTEGER  -- NULL until it is numbered
) WITHOUT ROWID;
CREATE INDEX tombstone_unnumbered ON tombstone (memory) WHERE seq IS NULL;

-- The server's side: the number of each memory's last change for laptops, and who could read it
-- then.
CREATE TABLE feed (
    memory INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL,
    readers TEXT NOT NULL,
    healed INTEGER NOT NULL DEFAULT 0  -- how new the state was that a laptop brought back after a restore
);
CREATE UNIQUE INDEX feed_by_seq ON feed (seq);

-- A random mark for the last number of each numbering: a restored server that counts on has other
-- marks.
CREATE TABLE numbering (
    seq INTEGER PRIMARY KEY,
    mark TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID;

-- Who lost access to a memory, and when; `purged` names the owner of a purged one.
CREATE TABLE revoked (
    grantee TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    purged TEXT,
    at TEXT NOT NULL,
    PRIMARY KEY (grantee, seq, id)
) WITHOUT ROWID;

-- Operations of laptops that were applied, so that repeating one has no effect.
CREATE TABLE applied (
    op TEXT PRIMARY KEY,
    result TEXT NOT NULL,
    id TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX applied_by_time ON applied (at);

-- The laptop's side: each memory as the server last sent it; `revision` is its number there, and
-- later ones are local.
CREATE TABLE replica (
    id TEXT PRIMARY KEY,
    memory INTEGER NOT NULL UNIQUE,
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL,
    head TEXT NOT NULL,
    revision INTEGER NOT NULL,
    access TEXT NOT NULL CHECK (access IN ('own', 'write', 'read')),
    digest TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE replica_link (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (source, kind, target)
) WITHOUT ROWID;
CREATE INDEX replica_link_by_target ON replica_link (target);

CREATE TABLE replica_share (
    id TEXT NOT NULL,  -- of a memory, or empty where a tag is shared
    tag TEXT NOT NULL,
    grantee TEXT NOT NULL,
    permission TEXT NOT NULL,
    PRIMARY KEY (id, tag, grantee)
) WITHOUT ROWID;

-- What the server has not acknowledged, without text: that is read from the memory when it is sent.
CREATE TABLE outbox (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    op TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    memory INTEGER REFERENCES memory (key) ON DELETE CASCADE,  -- NULL where nothing is left of it
    rev TEXT,
    base TEXT,
    detail TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX outbox_by_memory ON outbox (memory);
CREATE INDEX outbox_by_id ON outbox (id);

-- What the server refused, with its reason, until the user decides.
CREATE TABLE parked (
    op TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    rev TEXT,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID;

-- History that a restored server may lack, carried until it has acknowledged it.
CREATE TABLE carried (
    memory INTEGER PRIMARY KEY REFERENCES memory (key) ON DELETE CASCADE,
    bundle TEXT NOT NULL
);
