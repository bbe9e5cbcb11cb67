-- Cells: a tenant can move from one database to another. Its row says whether its home is here. The
-- row of the old home refuses everybody and names the new one; that of the new home admits nobody
-- before the switch.
ALTER TABLE tenant ADD COLUMN standing text NOT NULL DEFAULT 'home'
    CHECK (standing IN ('home', 'frozen', 'moved', 'arriving'));
ALTER TABLE tenant ADD COLUMN moved_to text;  -- the address of the new home, without a password
ALTER TABLE tenant ADD COLUMN move text;  -- the move under way, or by which it left, as JSON
ALTER TABLE tenant ADD COLUMN frozen_until timestamptz;  -- a writer who comes later thaws it: who froze it has died

-- The cell of each tenant. One database holds this table for all cells.
CREATE TABLE directory (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('trivet.tenant', true),
    cell text COLLATE "C" NOT NULL,
    address text NOT NULL,
    PRIMARY KEY (tenant)
);
ALTER TABLE directory ENABLE ROW LEVEL SECURITY;
ALTER TABLE directory FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON directory USING (tenant = (SELECT current_setting('trivet.tenant', true)))
    WITH CHECK (tenant = current_setting('trivet.tenant', true));

-- Starts a transaction for one tenant and one viewer, if the tenant's home is here. `read` is
-- allowed while the tenant is frozen; `write` locks its row. Queue transactions wait for no writer,
-- so they hold another lock, which a freeze waits for.
CREATE FUNCTION trivet_enter(name text, viewer text, patience text, purpose text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    home record;
BEGIN
    PERFORM set_config('trivet.tenant', name, true), set_config('trivet.viewer', viewer, true),
            set_config('lock_timeout', patience, true);
    IF purpose = 'write' THEN
        SELECT t.standing, t.moved_to, t.move INTO home FROM tenant AS t WHERE t.tenant = name FOR UPDATE;
    ELSE
        IF purpose = 'queue' THEN
            PERFORM pg_advisory_xact_lock_shared(hashtextextended('trivet tenant ' || name, 0));
        END IF;
        SELECT t.standing, t.moved_to, t.move INTO home FROM tenant AS t WHERE t.tenant = name;
    END IF;
    IF home.standing IS NULL OR home.standing = 'home' OR (home.standing = 'frozen' AND purpose = 'read') THEN
        RETURN;
    ELSIF home.standing = 'frozen' THEN
        UPDATE tenant SET standing = 'home', frozen_until = NULL
        WHERE tenant = name AND standing = 'frozen' AND frozen_until < clock_timestamp();
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TR002', MESSAGE = home.move::json ->> 'address';
        END IF;
    ELSIF home.standing = 'moved' THEN
        RAISE EXCEPTION USING ERRCODE = 'TR001', MESSAGE = home.moved_to;
    ELSE
        RAISE EXCEPTION USING ERRCODE = 'TR003', MESSAGE = home.move::json ->> 'address';
    END IF;
END $$;
