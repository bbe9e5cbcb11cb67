-- Run once by a superuser with psql, which the image of PostgreSQL does when its volume is new.
-- The server's own role is a plain one: row-level security, which keeps tenants and users apart, binds no superuser,
-- and Trivet refuses to start with one. It owns its database, so that it can make and change its tables.
\set ON_ERROR_STOP on
\getenv password DATABASE_PASSWORD
CREATE ROLE trivet LOGIN PASSWORD :'password' NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
CREATE DATABASE trivet OWNER trivet ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE trivet FROM PUBLIC;
\connect trivet
CREATE EXTENSION IF NOT EXISTS vector;
