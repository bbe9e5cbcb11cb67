-- Users of a server, their keys, and shares.
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

-- A live rule: it applies to every memory of the owner with this tag, now or later.
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

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['account', 'api_key', 'share', 'tag_share'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
END $$;

-- Besides the tenant: tables with words show a user only their own memories and those shared with
-- them. The viewer is empty for the server itself, which writes, fills its caches and checks keys;
-- otherwise it is a user, for reads only. The indexes (postings, vectors, mentions) hold no
-- sentences and are read for all users at once; their results are looked up in the memories.
CREATE POLICY one_user ON memory AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
    OR owner = (SELECT coalesce(current_setting('trivet.viewer', true), ''))
    OR (NOT sensitive AND state != 'deleted' AND (
        EXISTS (SELECT 1 FROM share AS s WHERE s.memory = memory.key AND s.grantee IN ((SELECT coalesce(current_setting('trivet.viewer', true), '')), '*'))
        OR EXISTS (SELECT 1 FROM tag_share AS s JOIN memory_tag AS t ON t.tag = s.tag
                   WHERE t.memory = memory.key AND s.owner = memory.owner AND s.grantee IN ((SELECT coalesce(current_setting('trivet.viewer', true), '')), '*'))))
);
CREATE POLICY one_user ON revision AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = revision.memory)
);
CREATE POLICY one_user ON secret AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = secret.memory)
);
CREATE POLICY one_user ON lexical AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = lexical.memory)
);
CREATE POLICY one_user ON link AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
    OR (EXISTS (SELECT 1 FROM memory AS m WHERE m.key = link.source)
        AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = link.target))
);
CREATE POLICY one_user ON audit AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR actor = (SELECT coalesce(current_setting('trivet.viewer', true), ''))
);
CREATE POLICY one_user ON account AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
);
CREATE POLICY one_user ON api_key AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
);
