-- The first revision of a purged memory, which another machine may know by another id.
ALTER TABLE tombstone ADD COLUMN first_rev text COLLATE "C";
CREATE INDEX tombstone_by_first_rev ON tombstone (tenant, first_rev) WHERE first_rev IS NOT NULL;
