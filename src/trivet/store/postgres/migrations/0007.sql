-- Ingested files, so that unchanged ones are not read again, and moves and deletions are followed.
CREATE TABLE vault (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    name text COLLATE "C" NOT NULL,
    root text NOT NULL,
    options text NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE vault_file (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    vault text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    modified bigint NOT NULL,
    reader text NOT NULL,
    PRIMARY KEY (tenant, vault, path),
    FOREIGN KEY (tenant, vault) REFERENCES vault (tenant, name) ON DELETE CASCADE
);

-- The memory's id without a foreign key, so that a purged memory stays gone.
CREATE TABLE vault_part (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    vault text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    place text NOT NULL,
    content text NOT NULL,
    said text NOT NULL,
    about text NOT NULL,
    PRIMARY KEY (tenant, vault, id),
    FOREIGN KEY (tenant, vault) REFERENCES vault (tenant, name) ON DELETE CASCADE
);

CREATE TABLE vault_link (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    vault text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, vault, source, kind, target),
    FOREIGN KEY (tenant, vault) REFERENCES vault (tenant, name) ON DELETE CASCADE
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['vault', 'vault_file', 'vault_part', 'vault_link'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
END $$;
