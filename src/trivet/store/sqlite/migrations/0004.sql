-- Version 4: users of a server, their keys, and shares.
ALTER TABLE memory ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';

CREATE TABLE account (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    created_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES account (name) ON DELETE CASCADE,
    hash BLOB NOT NULL,
    rights TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT
) WITHOUT ROWID;
CREATE INDEX api_key_by_account ON api_key (account);

CREATE TABLE share (
    memory INTEGER NOT NULL REFERENCES memory (key) ON DELETE CASCADE,
    grantee TEXT NOT NULL,  -- a user, or * for all
    permission TEXT NOT NULL CHECK (permission IN ('read', 'write')),
    created_at TEXT NOT NULL,
    PRIMARY KEY (memory, grantee)
) WITHOUT ROWID;
CREATE INDEX share_by_grantee ON share (grantee);

-- A live rule: it applies to every memory of the owner with this tag, now or later.
CREATE TABLE tag_share (
    owner TEXT NOT NULL,
    tag TEXT NOT NULL,
    grantee TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('read', 'write')),
    created_at TEXT NOT NULL,
    PRIMARY KEY (owner, tag, grantee)
) WITHOUT ROWID;
CREATE INDEX tag_share_by_grantee ON tag_share (grantee);
