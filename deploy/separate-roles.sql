-- For a database whose one role, trivet, owns its tables: gives them to a second role, trivet_owner, as database.sql
-- does for a new one. Run once by a superuser with psql, OWNER_PASSWORD in the environment, the server stopped.
\set ON_ERROR_STOP on
\getenv owner_password OWNER_PASSWORD
\connect trivet
BEGIN;
CREATE ROLE trivet_owner LOGIN PASSWORD :'owner_password' NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
REASSIGN OWNED BY trivet TO trivet_owner;
REVOKE ALL ON DATABASE trivet FROM PUBLIC;
GRANT CONNECT ON DATABASE trivet TO trivet;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO trivet;
ALTER DEFAULT PRIVILEGES FOR ROLE trivet_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO trivet;
-- To vacuum what was purged; before PostgreSQL 17 only owners may, and there autovacuum does it in time.
SELECT current_setting('server_version_num')::int >= 170000 AS can_maintain \gset
\if :can_maintain
GRANT MAINTAIN ON ALL TABLES IN SCHEMA public TO trivet;
ALTER DEFAULT PRIVILEGES FOR ROLE trivet_owner GRANT MAINTAIN ON TABLES TO trivet;
\endif
COMMIT;
