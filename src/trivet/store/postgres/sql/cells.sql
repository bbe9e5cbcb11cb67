-- name: enter
-- In any state of the tenant, for the processes that move it.
SELECT set_config('trivet.tenant', :tenant, true), set_config('trivet.viewer', '', true),
       set_config('lock_timeout', :patience, true);

-- name: name_cell
INSERT INTO meta (name, value) VALUES ('cell', gen_random_uuid()::text) ON CONFLICT DO NOTHING;

-- name: cell
SELECT value FROM meta WHERE name = 'cell';

-- name: listed
SELECT cell, address FROM directory;

-- name: claim
INSERT INTO directory (cell, address) VALUES (:cell, :address) ON CONFLICT DO NOTHING;

-- name: list
INSERT INTO directory (cell, address) VALUES (:cell, :address)
ON CONFLICT (tenant) DO UPDATE SET cell = excluded.cell, address = excluded.address;

-- name: standing
SELECT standing, moved_to, move FROM tenant;

-- name: lock
SELECT standing, moved_to, move, last_key, last_concept, last_change FROM tenant FOR UPDATE;

-- name: take_turn
-- One process at a time moves a tenant. The lock ends with its connection, even if the process
-- dies.
SELECT pg_try_advisory_lock(hashtextextended('trivet move ' || :tenant, 0));

-- name: wait_for_queues
SELECT pg_advisory_xact_lock(hashtextextended('trivet tenant ' || :tenant, 0));

-- name: note_move
UPDATE tenant SET move = :move;

-- name: freeze
UPDATE tenant SET standing = 'frozen', move = :move, frozen_until = clock_timestamp() + make_interval(secs => :seconds);

-- name: stay_frozen
UPDATE tenant SET frozen_until = clock_timestamp() + make_interval(secs => :seconds);

-- name: thaw
UPDATE tenant SET standing = 'home', frozen_until = NULL;

-- name: give_up
UPDATE tenant SET standing = 'home', frozen_until = NULL, move = NULL;

-- name: leave
UPDATE tenant SET standing = 'moved', moved_to = :address, frozen_until = NULL;

-- name: arrive
INSERT INTO tenant (tenant, standing, move) VALUES (:tenant, 'arriving', :move)
ON CONFLICT (tenant) DO UPDATE SET standing = 'arriving', moved_to = NULL, frozen_until = NULL, move = excluded.move;

-- name: count_on
-- One more change than the old home had, so that caches of the tenant check its models again.
UPDATE tenant SET last_key = :last_key, last_concept = :last_concept, last_change = :last_change;

-- name: note_models
INSERT INTO change (sequence, memory) VALUES (:sequence, :memory) ON CONFLICT DO NOTHING;

-- name: activate
UPDATE tenant SET standing = 'home', moved_to = NULL, move = NULL;

-- name: remove_tenant
DELETE FROM tenant;

-- name: unlist
DELETE FROM directory WHERE cell = :cell;

-- name: watermark
-- Transactions that commit from now on have this number or a later one.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text;

-- name: models
SELECT model, identity, spec, dimension, serving FROM embedding_model ORDER BY model;

-- name: put_model
INSERT INTO embedding_model (identity, spec, dimension, serving) VALUES (:identity, :spec, :dimension, :serving)
ON CONFLICT (tenant, identity) DO UPDATE
SET spec = excluded.spec, dimension = excluded.dimension, serving = excluded.serving RETURNING model;

-- name: drop_models
DELETE FROM embedding_model WHERE NOT identity = ANY (:identities);

-- name: own_rows
-- Rows that show that a tenant of this name is somebody else's.
SELECT EXISTS (SELECT 1 FROM memory) OR EXISTS (SELECT 1 FROM account) OR EXISTS (SELECT 1 FROM proposal)
    OR EXISTS (SELECT 1 FROM vault) OR EXISTS (SELECT 1 FROM audit);

-- name: postings
-- Postings are not copied but rebuilt for the memories that arrived.
INSERT INTO posting (term, memory, content, title, keywords, tags, category)
SELECT term, memory, count(*) FILTER (WHERE field = 1), count(*) FILTER (WHERE field = 2),
       count(*) FILTER (WHERE field = 3), count(*) FILTER (WHERE field = 4), count(*) FILTER (WHERE field = 5)
FROM (SELECT l.memory, unnest(string_to_array(text, ' ')) AS term, field
      FROM lexical AS l, unnest(ARRAY[l.content, l.title, l.keywords, l.tags, l.category])
                         WITH ORDINALITY AS one (text, field)
      WHERE l.memory IN (SELECT memory FROM come_lexical)) AS word
GROUP BY term, memory;

-- name: drop_postings
DELETE FROM posting WHERE memory IN (SELECT memory FROM come_lexical);

-- name: tables
SELECT c.relname::text AS name,
       ARRAY(SELECT a.attname::text FROM pg_attribute AS a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
             ORDER BY a.attnum) AS columns,
       ARRAY(SELECT a.attname::text FROM pg_index AS i, unnest(i.indkey) WITH ORDINALITY AS k (number, place)
             JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
             WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place) AS key,
       ARRAY(SELECT a.attname::text FROM pg_attribute AS a
             WHERE a.attrelid = c.oid AND a.atttypid = 'bigint'::regtype) AS numbers,
       coalesce((SELECT json_agg(json_build_object(
                'table', f.confrelid::regclass::text,
                'columns', ARRAY(SELECT a.attname FROM unnest(f.conkey) WITH ORDINALITY AS k (number, place)
                                 JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number ORDER BY k.place),
                'target', ARRAY(SELECT a.attname FROM unnest(f.confkey) WITH ORDINALITY AS k (number, place)
                                JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = k.number
                                ORDER BY k.place)))
                FROM pg_constraint AS f WHERE f.conrelid = c.oid AND f.contype = 'f'), '[]') AS parents
FROM pg_class AS c JOIN pg_attribute AS t ON t.attrelid = c.oid AND t.attname = 'tenant' AND NOT t.attisdropped
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname;
