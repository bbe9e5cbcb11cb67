-- Data for laptops that follow a tenant, empty without any. The laptops' own data is in their
-- files. A revision's name on every machine, its base, and its author (NULL: the memory's owner).
ALTER TABLE revision ADD COLUMN rev text COLLATE "C";
ALTER TABLE revision ADD COLUMN base text COLLATE "C";
ALTER TABLE revision ADD COLUMN author text COLLATE "C";

-- An edit that clashed with the head, kept outside the history until somebody resolves it.
CREATE TABLE branch (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    rev text COLLATE "C" NOT NULL,
    base text COLLATE "C",
    author text COLLATE "C",
    changed_at text COLLATE "C" NOT NULL,
    action text NOT NULL,
    snapshot text NOT NULL,
    waiting integer NOT NULL,  -- 1: nobody has resolved it yet; 2: not yet sent by its laptop
    terms text NOT NULL,  -- its words, so that recall finds the memory by them too
    PRIMARY KEY (tenant, memory, rev),
    FOREIGN KEY (tenant, memory) REFERENCES memory (tenant, key) ON DELETE CASCADE
);

-- Purged memories, kept forever, and when laptops were notified. `owner` was the memory's owner.
CREATE TABLE tombstone (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    id text COLLATE "C" NOT NULL,
    memory bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    seq bigint,  -- NULL until it is numbered
    PRIMARY KEY (tenant, id)
);
CREATE INDEX tombstone_unnumbered ON tombstone (tenant, memory) WHERE seq IS NULL;

-- The number of each memory's last change for laptops, and who could read it then.
CREATE TABLE feed (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    digest text NOT NULL,
    readers text NOT NULL,
    healed bigint NOT NULL DEFAULT 0,  -- how new the state was that a laptop brought back after a restore
    PRIMARY KEY (tenant, memory)
);
CREATE UNIQUE INDEX feed_by_seq ON feed (tenant, seq);

-- A random mark for the last number of each numbering: a restored server that counts on has other
-- marks.
CREATE TABLE numbering (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    seq bigint NOT NULL,
    mark text NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);

-- Who lost access to a memory, and when; `purged` names the owner of a purged one.
CREATE TABLE revoked (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    grantee text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    purged text COLLATE "C",
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, grantee, seq, id)
);

-- Operations of laptops that were applied, so that repeating one has no effect.
CREATE TABLE applied (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    op text COLLATE "C" NOT NULL,
    result text NOT NULL,
    id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, op)
);
CREATE INDEX applied_by_time ON applied (tenant, at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['branch', 'tombstone', 'feed', 'numbering', 'revoked', 'applied'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
    -- Tables that no user reads; the server answers from them.
    FOREACH name IN ARRAY ARRAY['tombstone', 'feed', 'numbering', 'revoked', 'applied'] LOOP
        EXECUTE format('CREATE POLICY one_user ON %I AS RESTRICTIVE FOR SELECT
                        USING ((SELECT coalesce(current_setting(''trivet.viewer'', true), '''')) = '''')', name);
    END LOOP;
END $$;

-- A user sees the branches of visible memories.
CREATE POLICY one_user ON branch AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
    OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = branch.memory)
);
