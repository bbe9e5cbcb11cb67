-- Run once by a superuser with psql, which the image of PostgreSQL does when its volume is new.
-- Two plain roles: row-level security, which keeps tenants and users apart, binds no superuser, and Trivet refuses to
-- start with one. trivet_owner owns the tables and is used by `trivet migrate` alone; trivet is the server's own, which
-- reads and writes rows and can change no table, so nothing that gets hold of it can switch row-level security off.
\set ON_ERROR_STOP on
\getenv owner_password OWNER_PASSWORD
\getenv password DATABASE_PASSWORD
CREATE ROLE trivet_owner LOGIN PASSWORD :'owner_password' NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
CREATE ROLE trivet LOGIN PASSWORD :'password' NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
CREATE DATABASE trivet OWNER trivet_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE trivet FROM PUBLIC;
GRANT CONNECT ON DATABASE trivet TO trivet;
\connect trivet
CREATE EXTENSION IF NOT EXISTS vector;
-- For every table that a migration makes, now or later.
ALTER DEFAULT PRIVILEGES FOR ROLE trivet_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO trivet;
-- To vacuum what was purged; before PostgreSQL 17 only owners may, and there autovacuum does it in time.
SELECT current_setting('server_version_num')::int >= 170000 AS can_maintain \gset
\if :can_maintain
ALTER DEFAULT PRIVILEGES FOR ROLE trivet_owner GRANT MAINTAIN ON TABLES TO trivet;
\endif
