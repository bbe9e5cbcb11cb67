-- Requests to a server that must act once, and their answers.
CREATE TABLE once (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    name bytea NOT NULL,  -- a digest of the API key and the Idempotency-Key that came with it
    request bytea NOT NULL,  -- a digest of what was asked
    taken_at double precision NOT NULL,
    answer bytea,  -- sealed with a key that is not stored; NULL while it is being worked on
    PRIMARY KEY (tenant, name)
);
CREATE INDEX once_by_time ON once (tenant, taken_at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['once'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I
                        USING (tenant = (SELECT current_setting(''trivet.tenant'', true)))
                        WITH CHECK (tenant = current_setting(''trivet.tenant'', true))', name);
    END LOOP;
END $$;
