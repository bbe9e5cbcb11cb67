-- Likely updates between memories, and the memories not compared yet.
CREATE TABLE likely_update (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    newer bigint NOT NULL,
    older bigint NOT NULL,
    probability double precision NOT NULL,
    PRIMARY KEY (tenant, newer, older),
    FOREIGN KEY (tenant, newer) REFERENCES memory (tenant, key) ON DELETE CASCADE,
    FOREIGN KEY (tenant, older) REFERENCES memory (tenant, key) ON DELETE CASCADE
);
CREATE INDEX likely_update_by_older ON likely_update (tenant, older);

CREATE TABLE comparison (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    revision integer NOT NULL,
    PRIMARY KEY (tenant, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memory (tenant, key) ON DELETE CASCADE
);

-- Within this transaction the owner sees the rows of all tenants.
ALTER TABLE memory NO FORCE ROW LEVEL SECURITY;
INSERT INTO comparison (tenant, memory, revision)
SELECT tenant, key, revision FROM memory WHERE state != 'deleted' AND NOT sensitive;
ALTER TABLE memory FORCE ROW LEVEL SECURITY;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['likely_update', 'comparison'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
END $$;

-- A user sees rows about visible memories.
CREATE POLICY one_user ON likely_update AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
    OR (EXISTS (SELECT 1 FROM memory AS m WHERE m.key = likely_update.newer)
        AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = likely_update.older))
);
CREATE POLICY one_user ON comparison AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
    OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = comparison.memory)
);
