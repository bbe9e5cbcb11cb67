-- name: columns
m.key, m.id, m.content, m.title, m.category, m.tags, m.importance, m.confidence, m.expanded_keywords, m.scope,
m.source_uri, m.source_start_line, m.source_end_line, m.created_at, m.updated_at, m.valid_from, m.valid_to, m.state,
m.sensitive, m.revision, m.length, m.owner;

-- name: by_id
SELECT {columns} FROM memory AS m WHERE id = :id;

-- name: seen_by_id
SELECT {columns} FROM memory AS m WHERE id = :id AND {readable};

-- name: seen_by_ids
SELECT {columns} FROM memory AS m WHERE id = ANY (as_texts(:ids)) AND {readable};

-- name: ids_of_keys
SELECT key, id FROM memory WHERE key = ANY (as_keys(:keys));

-- name: all_ids
SELECT string_agg(int8send(key), ''::bytea), string_agg(convert_to(id, 'UTF8'), ''::bytea)
FROM (SELECT key, id FROM memory WHERE octet_length(id) = :length ORDER BY key LIMIT :most) AS each;

-- name: keys_of_ids
SELECT id, key FROM memory WHERE id = ANY (as_texts(:ids));

-- name: after_key
SELECT {columns} FROM memory AS m WHERE key > :key AND {readable} ORDER BY key LIMIT :limit;

-- name: insert
INSERT INTO memory (key, id, content, title, category, tags, importance, confidence, expanded_keywords, scope, source_uri,
                    source_start_line, source_end_line, created_at, updated_at, valid_from, valid_to, state, sensitive,
                    revision, length, owner)
VALUES (:key, :id, :content, :title, :category, :tags, :importance, :confidence, :expanded_keywords, :scope, :source_uri,
        :source_start_line, :source_end_line, :created_at, :updated_at, :valid_from, :valid_to, :state, :sensitive,
        :revision, :length, :owner);

-- name: insert_many
INSERT INTO memory (key, id, content, title, category, tags, importance, confidence, expanded_keywords, scope, source_uri,
source_start_line, source_end_line, created_at, updated_at, valid_from, valid_to, state, sensitive, revision,
length, owner)
SELECT key, id, content, title, category, tags, importance, confidence, expanded_keywords, scope, source_uri,
source_start_line, source_end_line, created_at, updated_at, valid_from, valid_to, state, sensitive, revision,
length, owner
FROM json_populate_recordset(NULL::memory, :rows);

-- name: update
UPDATE memory SET content = :content, title = :title, category = :category, tags = :tags, importance = :importance,
                  confidence = :confidence, expanded_keywords = :expanded_keywords, scope = :scope,
                  source_uri = :source_uri, source_start_line = :source_start_line, source_end_line = :source_end_line,
                  created_at = :created_at, updated_at = :updated_at, valid_from = :valid_from, valid_to = :valid_to,
                  state = :state, sensitive = :sensitive, revision = :revision, length = :length
WHERE key = :key;

-- name: set_state
UPDATE memory SET state = :state WHERE key = :key;

-- name: state
SELECT state FROM memory WHERE key = :key;

-- name: delete
DELETE FROM memory WHERE key = :key;

-- name: delete_tags
DELETE FROM memory_tag WHERE memory = :key;

-- name: insert_tags
INSERT INTO memory_tag (memory, tag) SELECT :key, unnest(as_texts(:tags))
ON CONFLICT DO NOTHING;

-- name: insert_tags_many
INSERT INTO memory_tag (memory, tag)
SELECT r.key, unnest(as_texts(r.tags)) FROM json_to_recordset(:rows) AS r (key bigint, tags text)
ON CONFLICT DO NOTHING;

-- name: insert_revision_many
INSERT INTO revision (memory, revision, changed_at, action, snapshot)
SELECT key, revision, changed_at, action, snapshot
FROM json_to_recordset(:rows) AS r (key bigint, revision integer, changed_at text, action text, snapshot text);

-- name: insert_revision
INSERT INTO revision (memory, revision, changed_at, action, snapshot)
VALUES (:key, :revision, :changed_at, :action, :snapshot);

-- name: rewrite_revision
UPDATE revision SET snapshot = :snapshot WHERE memory = :key AND revision = :revision;

-- name: revisions
SELECT revision, changed_at, action, snapshot FROM revision
WHERE memory = (SELECT key FROM memory AS m WHERE id = :id AND {readable}) ORDER BY revision;

-- name: make_tenant
INSERT INTO tenant (tenant) VALUES (:tenant) ON CONFLICT DO NOTHING;

-- name: lock_tenant
SELECT last_key, last_concept, last_change FROM tenant FOR UPDATE;

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

-- name: changes_since
SELECT sequence, memory FROM change WHERE sequence > :sequence ORDER BY sequence;

-- name: count_by_state
SELECT state, count(*) FROM memory AS m WHERE {readable} GROUP BY state;

-- name: count_by_category
SELECT category, count(*) FROM memory AS m WHERE state != 'deleted' AND {readable} GROUP BY category ORDER BY 2 DESC, 1;

-- name: count_by_scope
SELECT scope, count(*) FROM memory AS m WHERE state != 'deleted' AND {readable} GROUP BY scope ORDER BY 2 DESC, 1;

-- name: count_by_tag
SELECT t.tag, count(*) FROM memory_tag AS t JOIN memory AS m ON m.key = t.memory
WHERE m.state != 'deleted' AND {readable} GROUP BY t.tag ORDER BY 2 DESC, 1;

-- name: count_other
SELECT (SELECT count(*) FROM link) AS links,
       (SELECT count(*) FROM revision) AS revisions,
       (SELECT count(*) FROM memory WHERE sensitive AND state != 'deleted') AS sensitive,
       (SELECT count(*) FROM passage) AS passages,
       (SELECT count(DISTINCT concept) FROM mention WHERE role > 0) AS concepts,
       (SELECT count(*) FROM mention) AS mentions,
       (SELECT count(*) FROM statement) AS statements;

-- name: count_other_seen
-- The same of the memories that a user may see.
WITH seen AS (SELECT m.key, m.state, m.sensitive FROM memory AS m WHERE {readable})
SELECT (SELECT count(*) FROM link AS l JOIN seen AS s ON s.key = l.source JOIN seen AS t ON t.key = l.target) AS links,
       (SELECT count(*) FROM revision AS r JOIN seen AS s ON s.key = r.memory) AS revisions,
       (SELECT count(*) FROM seen WHERE sensitive AND state != 'deleted') AS sensitive,
       (SELECT count(*) FROM passage AS p JOIN seen AS s ON s.key = p.memory) AS passages,
       (SELECT count(DISTINCT concept) FROM mention AS n JOIN seen AS s ON s.key = n.memory WHERE role > 0) AS concepts,
       (SELECT count(*) FROM mention AS n JOIN seen AS s ON s.key = n.memory) AS mentions,
       (SELECT count(*) FROM statement AS n JOIN seen AS s ON s.key = n.memory) AS statements;
