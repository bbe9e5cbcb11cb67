-- Proposals that wait for review, how often memories were shown, and feedback.
CREATE TABLE proposal (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    content text NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    action text NOT NULL CHECK (action IN ('add', 'update', 'supersede', 'nothing')),
    memory text COLLATE "C",  -- the id of the memory it concerns
    category text NOT NULL,
    tags text NOT NULL,
    scope text NOT NULL,
    source text,
    state text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'accepted', 'rejected')),
    created_at text COLLATE "C" NOT NULL,
    decided_at text,
    stored text COLLATE "C",  -- the id of the memory it became
    curated_at text,
    said text COLLATE "C" NOT NULL,  -- a digest of what it says, whatever becomes of its words
    PRIMARY KEY (tenant, id)
);
CREATE INDEX proposal_by_time ON proposal (tenant, owner, state, created_at);
CREATE INDEX proposal_by_said ON proposal (tenant, owner, said);
CREATE INDEX proposal_by_stored ON proposal (tenant, stored);

CREATE TABLE usage (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    shown bigint NOT NULL,
    last_shown text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memory (tenant, key) ON DELETE CASCADE
);

CREATE TABLE feedback (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    query text COLLATE "C" NOT NULL,  -- empty where it was not said what was asked
    verdict text NOT NULL CHECK (verdict IN ('useful', 'not-useful')),
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory, actor, query),
    FOREIGN KEY (tenant, memory) REFERENCES memory (tenant, key) ON DELETE CASCADE
);

-- Finds the memory that a federated hit names by its source.
CREATE INDEX memory_by_source ON memory (tenant, source_uri) WHERE source_uri IS NOT NULL;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['proposal', 'usage', 'feedback'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
END $$;

-- Only for the user concerned.
CREATE POLICY one_user ON proposal AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR owner = (SELECT coalesce(current_setting('trivet.viewer', true), ''))
);
CREATE POLICY one_user ON feedback AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR actor = (SELECT coalesce(current_setting('trivet.viewer', true), ''))
);
