-- Version 2: the concept graph, derived from memories and deleted with them.
CREATE TABLE concept (
    concept INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: the graph in memory goes by it
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE mention (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    concept INTEGER NOT NULL REFERENCES concept (concept),
    reader TEXT NOT NULL CHECK (reader IN ('rules', 'triples')),
    role INTEGER NOT NULL,  -- 0 maybe, 1 in, 2 about
    kind TEXT NOT NULL,
    label TEXT NOT NULL,  -- as it stands in the memory
    form TEXT NOT NULL,  -- the label folded; the forms of a concept are its aliases
    PRIMARY KEY (memory, concept, reader)
) WITHOUT ROWID;
CREATE INDEX mention_by_concept ON mention (concept, memory);
CREATE INDEX mention_by_form ON mention (form, concept);

-- A relation that a memory states between two concepts, its validity, and when it was recorded.
-- Rows never change; the view `held` shows until when each holds in the light of all others.
CREATE TABLE statement (
    statement INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES concept (concept),
    relation TEXT NOT NULL,
    target INTEGER NOT NULL REFERENCES concept (concept),
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    weight REAL NOT NULL,
    single INTEGER NOT NULL,  -- 1: the source has one such target at a time, so another one contradicts this
    valid_from TEXT NOT NULL,
    valid_to TEXT,
    recorded_at TEXT NOT NULL,
    UNIQUE (source, relation, target, memory, valid_from)
);
CREATE INDEX statement_by_target ON statement (target);
CREATE INDEX statement_by_memory ON statement (memory);

-- Each reason why a statement ends: a later one contradicts it, its memory was superseded, or its
-- validity ended.
CREATE VIEW statement_end AS
SELECT s.statement, later.valid_from AS ends_at, later.memory AS ended_by, later.recorded_at AS known_at
FROM statement AS s JOIN statement AS later
  ON later.source = s.source AND later.relation = s.relation AND later.target != s.target AND later.valid_from > s.valid_from
WHERE s.single AND later.single
UNION ALL
SELECT s.statement, max(s.valid_from, coalesce(m.valid_from, m.created_at)), m.key, l.created_at
FROM statement AS s JOIN link AS l ON l.target = s.memory AND l.kind = 'supersedes'
JOIN memory AS m ON m.key = l.source AND m.state != 'deleted'
UNION ALL
SELECT s.statement, m.valid_to, NULL, m.updated_at FROM statement AS s JOIN memory AS m ON m.key = s.memory
WHERE m.valid_to IS NOT NULL
UNION ALL
SELECT statement, valid_to, NULL, recorded_at FROM statement WHERE valid_to IS NOT NULL;

CREATE VIEW held AS
SELECT s.statement, s.source, s.relation, s.target, s.memory, s.weight, s.valid_from, min(e.ends_at) AS valid_to,
       s.recorded_at, e.ended_by, e.known_at
FROM statement AS s LEFT JOIN statement_end AS e ON e.statement = s.statement
GROUP BY s.statement;

-- Memories to be read for concepts, by the rules or by a language model.
CREATE TABLE reading (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    reader TEXT NOT NULL CHECK (reader IN ('rules', 'triples')),
    revision INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    last_error TEXT,
    PRIMARY KEY (memory, reader)
) WITHOUT ROWID;
CREATE INDEX reading_due ON reading (reader, not_before);

-- The revision of a memory last read, even if nothing was found.
CREATE TABLE was_read (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    reader TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (memory, reader)
) WITHOUT ROWID;

INSERT INTO reading (memory, reader, revision)
SELECT key, 'rules', revision FROM memory WHERE state != 'deleted' AND NOT sensitive;
