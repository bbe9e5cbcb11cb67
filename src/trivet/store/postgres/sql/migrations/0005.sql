-- Users of a server, their keys, and whom a memory is shared with.
ALTER TABLE memory ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT 'local';

CREATE TABLE account (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    name text COLLATE "C" NOT NULL,
    role text NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    created_at text NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE api_key (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    id text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    rights text NOT NULL,
    label text NOT NULL,
    created_at text NOT NULL,
    expires_at text COLLATE "C",
    revoked_at text,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, account) REFERENCES account (tenant, name) ON DELETE CASCADE
);
CREATE INDEX api_key_by_account ON api_key (tenant, account);

CREATE TABLE share (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    grantee text COLLATE "C" NOT NULL,  -- a user, or * for all
    permission text NOT NULL CHECK (permission IN ('read', 'write')),
    created_at text NOT NULL,
    PRIMARY KEY (tenant, memory, grantee),
    FOREIGN KEY (tenant, memory) REFERENCES memory (tenant, key) ON DELETE CASCADE
);
CREATE INDEX share_by_grantee ON share (tenant, grantee);

-- A live rule: whatever memory of the owner carries the tag, now or later.
CREATE TABLE tag_share (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    owner text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    grantee text COLLATE "C" NOT NULL,
    permission text NOT NULL CHECK (permission IN ('read', 'write')),
    created_at text NOT NULL,
    PRIMARY KEY (tenant, owner, tag, grantee)
);
CREATE INDEX tag_share_by_grantee ON tag_share (tenant, grantee);
