-- Version 7: proposals that wait for review, how often memories were shown, and feedback.
CREATE TABLE proposal (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    content TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('add', 'update', 'supersede', 'nothing')),
    memory TEXT,  -- the id of the memory it concerns
    category TEXT NOT NULL,
    tags TEXT NOT NULL,
    scope TEXT NOT NULL,
    source TEXT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'accepted', 'rejected')),
    created_at TEXT NOT NULL,
    decided_at TEXT,
    stored TEXT,  -- the id of the memory it became
    curated_at TEXT,
    said TEXT NOT NULL  -- a digest of what it says, whatever becomes of its words
) WITHOUT ROWID;
CREATE INDEX proposal_by_time ON proposal (owner, state, created_at);
CREATE INDEX proposal_by_said ON proposal (owner, said);
CREATE INDEX proposal_by_stored ON proposal (stored);

CREATE TABLE usage (
    memory INTEGER PRIMARY KEY REFERENCES memory (key) ON DELETE CASCADE,
    shown INTEGER NOT NULL,
    last_shown TEXT NOT NULL
);

CREATE TABLE feedback (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    actor TEXT NOT NULL,
    query TEXT NOT NULL,  -- empty where it was not said what was asked
    verdict TEXT NOT NULL CHECK (verdict IN ('useful', 'not-useful')),
    at TEXT NOT NULL,
    PRIMARY KEY (memory, actor, query)
) WITHOUT ROWID;

-- Finds the memory that a federated hit names by its source.
CREATE INDEX memory_by_source ON memory (source_uri) WHERE source_uri IS NOT NULL;
