-- Version 1. `key` is a small integer that in-memory indexes use as an array position; it is never
-- reused.
CREATE TABLE memory (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    title TEXT,
    category TEXT NOT NULL,
    tags TEXT NOT NULL,
    importance REAL NOT NULL,
    confidence REAL NOT NULL,
    expanded_keywords TEXT NOT NULL,
    scope TEXT NOT NULL,
    source_uri TEXT,
    source_start_line INTEGER,
    source_end_line INTEGER,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    valid_from TEXT,
    valid_to TEXT,
    state TEXT NOT NULL CHECK (state IN ('active', 'superseded', 'archived', 'deleted')),
    sensitive INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    length INTEGER NOT NULL  -- terms in content and title, for BM25's length norm
);
CREATE INDEX memory_by_creation ON memory (created_at, id);
CREATE INDEX memory_by_importance ON memory (importance, created_at, id);
CREATE INDEX memory_bounded ON memory (key) WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL;

CREATE TABLE memory_tag (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (memory, tag)
) WITHOUT ROWID;
CREATE INDEX memory_tag_by_tag ON memory_tag (tag);

CREATE TABLE revision (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    changed_at TEXT NOT NULL,
    action TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (memory, revision)
);

CREATE TABLE link (
    source INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    target INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    PRIMARY KEY (source, kind, target)
) WITHOUT ROWID;
CREATE INDEX link_by_target ON link (target, kind);

-- The columns hold analyzed terms, so the tokenizer only needs to split at spaces.
CREATE VIRTUAL TABLE lexical USING fts5 (
    content, title, keywords, tags, category,
    tokenize = "ascii tokenchars '._-/:@#+\'"
);
CREATE VIRTUAL TABLE lexical_term USING fts5vocab (lexical, instance);

-- A few hashes of word pairs per memory. Memories that share some are compared for near-duplicates.
CREATE TABLE fingerprint (
    hash INTEGER NOT NULL,
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    PRIMARY KEY (hash, memory)
) WITHOUT ROWID;
CREATE INDEX fingerprint_by_memory ON fingerprint (memory);

CREATE TABLE embedding_model (
    model INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: caches go by it
    identity TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    serving INTEGER NOT NULL  -- 1: answers recalls; 0: still being filled
);

CREATE TABLE passage (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    model INTEGER NOT NULL REFERENCES embedding_model (model) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    vector BLOB NOT NULL,  -- float16, unit length
    PRIMARY KEY (memory, model, ordinal)
);
CREATE INDEX passage_by_model ON passage (model, memory);

CREATE TABLE job (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    model INTEGER NOT NULL REFERENCES embedding_model (model) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    last_error TEXT,
    PRIMARY KEY (memory, model)
) WITHOUT ROWID;
CREATE INDEX job_due ON job (model, not_before);

-- Every change to a memory or its derived data, in commit order, for caches in other processes.
CREATE TABLE change (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    memory INTEGER NOT NULL
);

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
