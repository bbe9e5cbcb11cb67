-- name: insert
INSERT INTO memory ({memory_columns}) SELECT {memory_columns} FROM json_populate_recordset(NULL::memory, :rows);

-- name: all_ids
SELECT string_agg(int8send(key), ''::bytea), string_agg(convert_to(id, 'UTF8'), ''::bytea)
FROM (SELECT key, id FROM memory WHERE octet_length(id) = :length ORDER BY key LIMIT :most) AS each;

-- name: insert_tags
INSERT INTO memory_tag (memory, tag)
SELECT r.key, unnest(as_texts(r.tags)) FROM json_to_recordset(:rows) AS r (key bigint, tags text)
ON CONFLICT DO NOTHING;

-- name: insert_revision
INSERT INTO revision (memory, revision, changed_at, action, snapshot, rev, base, author)
SELECT key, revision, changed_at, action, snapshot, rev, base, author
FROM json_to_recordset(:rows) AS r (key bigint, revision integer, changed_at text, action text, snapshot text,
                                    rev text, base text, author text);

-- name: make_tenant
INSERT INTO tenant (tenant) VALUES (:tenant) ON CONFLICT DO NOTHING;

-- The transaction's number, and the server's life: its timeline and statistics reset. After a
-- failover (another timeline) or a crash (which resets the statistics), a number that was not on
-- disk yet is assigned again.
-- name: lock_tenant
SELECT last_key, last_concept, last_change, pg_current_xact_id()::text AS transaction, {life} AS life
FROM tenant FOR UPDATE;

-- name: life
left(pg_walfile_name(pg_current_wal_lsn()), 8)
|| coalesce((SELECT extract(epoch FROM stats_reset)::text FROM pg_stat_archiver), '');

-- name: value_and_life
-- A single value, with the server's life.
SELECT (SELECT value FROM meta WHERE name = :name), {life};

-- name: fate
SELECT pg_xact_status(:transaction::xid8), (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint, {life};

-- name: insert_changes
INSERT INTO change (sequence, memory)
SELECT :last + listed.place, listed.memory FROM unnest(as_keys(:keys)) WITH ORDINALITY AS listed (memory, place);

-- name: move_on
UPDATE tenant SET last_key = :last_key, last_concept = :last_concept, last_change = :last_change;

-- name: trim_changes
DELETE FROM change WHERE sequence <= (SELECT last_change FROM tenant) - :keep;

-- name: last_change
SELECT last_change FROM tenant;

-- name: size
SELECT coalesce((SELECT sum(pg_column_size(m.*)) FROM memory AS m), 0)
     + coalesce((SELECT sum(pg_column_size(r.*)) FROM revision AS r), 0)
     + coalesce((SELECT sum(pg_column_size(p.*)) FROM passage AS p), 0);

-- name: count_by_tag
-- Not from memory_tag: for a user, each of its rows is looked up among the memories again.
SELECT t.tag, count(*) FROM memory AS m, jsonb_array_elements_text(m.tags::jsonb) AS t (tag)
WHERE m.state != 'deleted' AND {readable} GROUP BY t.tag ORDER BY 2 DESC, t.tag COLLATE "C";

-- name: terms_of_ids
SELECT m.id, l.content, l.title FROM memory AS m JOIN lexical AS l ON l.memory = m.key
WHERE m.id {in_texts:ids} AND {readable};
