-- Encrypted secrets taken out of texts, and the chained audit record.
CREATE TABLE secret (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    memory bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    number integer NOT NULL,  -- counts within a memory and kind; the placeholder in the text names both
    revision integer NOT NULL,  -- in which it was first found, and in which field
    field text NOT NULL,
    key text COLLATE "C" NOT NULL,  -- the id of the key, never the key
    nonce bytea NOT NULL,
    sealed bytea NOT NULL,
    PRIMARY KEY (tenant, memory, kind, number),
    FOREIGN KEY (tenant, memory) REFERENCES memory (tenant, key) ON DELETE CASCADE
);
CREATE INDEX secret_by_key ON secret (tenant, key);

-- Kept when a memory is purged. Each hash covers the previous entry, so that changes and gaps show.
CREATE TABLE audit (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    sequence bigint NOT NULL,
    at text NOT NULL,
    actor text,
    act text NOT NULL,
    memory text,
    detail text NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant, sequence)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['secret', 'audit'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
END $$;
