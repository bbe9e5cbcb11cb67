-- Version 8: likely updates between memories, and the memories not compared yet.
CREATE TABLE likely_update (
    newer INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    older INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    probability REAL NOT NULL,
    PRIMARY KEY (newer, older)
) WITHOUT ROWID;
CREATE INDEX likely_update_by_older ON likely_update (older);

CREATE TABLE comparison (
    memory INTEGER PRIMARY KEY REFERENCES memory (key) ON DELETE CASCADE,
    revision INTEGER NOT NULL
);

INSERT INTO comparison (memory, revision)
SELECT key, revision FROM memory WHERE state != 'deleted' AND NOT sensitive;
