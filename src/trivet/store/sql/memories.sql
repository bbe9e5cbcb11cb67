-- name: by_id
SELECT {memory} FROM memory AS m WHERE id = :id;

-- name: seen_by_id
SELECT {memory} FROM memory AS m WHERE id = :id AND {readable};

-- name: is_seen
SELECT 1 FROM memory AS m WHERE id = :id AND {readable};

-- name: seen_by_ids
SELECT {memory} FROM memory AS m WHERE id {in_texts:ids} AND {readable};

-- name: terms_of_ids
-- The analyzed terms of content and title. Every store writes its own.

-- name: dated_by_ids
SELECT m.id, m.created_at, m.valid_from, m.valid_to, m.times FROM memory AS m WHERE id {in_texts:ids} AND {readable};

-- name: starting_with
SELECT m.id FROM memory AS m WHERE m.id >= :start AND m.id < :stop AND {readable} ORDER BY m.id LIMIT :limit;

-- name: ids_of_keys
SELECT key, id FROM memory WHERE key {in_keys:keys};

-- name: keys_of_ids
SELECT id, key FROM memory WHERE id {in_texts:ids};

-- name: after_key
SELECT {memory} FROM memory AS m WHERE key > :key AND {readable} ORDER BY key LIMIT :limit;

-- name: keys_and_ids
SELECT key, id FROM memory ORDER BY id;

-- name: seen_by_key
SELECT {memory} FROM memory AS m WHERE key = :key AND {readable};

-- name: insert
INSERT INTO memory ({memory_columns}) VALUES ({memory_values}) RETURNING key;

-- name: update
UPDATE memory SET {memory_changes} WHERE key = :key;

-- name: set_state
UPDATE memory SET state = :state WHERE key = :key;

-- name: state
SELECT state FROM memory WHERE key = :key;

-- name: delete
DELETE FROM memory WHERE key = :key;

-- name: delete_tags
DELETE FROM memory_tag WHERE memory = :key;

-- name: insert_tags
INSERT INTO memory_tag (memory, tag) SELECT :key, wanted.value FROM {each_text:tags} WHERE true
ON CONFLICT DO NOTHING;

-- name: insert_revision
INSERT INTO revision (memory, revision, changed_at, action, snapshot, rev, base, author)
VALUES (:key, :revision, :changed_at, :action, :snapshot, :rev, :base, :author);

-- name: rewrite_revision
UPDATE revision SET snapshot = :snapshot WHERE memory = :key AND revision = :revision;

-- name: revisions
SELECT revision, changed_at, action, snapshot FROM revision
WHERE memory = (SELECT key FROM memory AS m WHERE id = :id AND {readable}) ORDER BY revision;

-- name: trim_changes
-- Every store writes its own.

-- name: last_change
-- Every store writes its own.

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
-- The same for the memories a user may see.
WITH seen AS (SELECT m.key, m.state, m.sensitive FROM memory AS m WHERE {readable})
SELECT (SELECT count(*) FROM link AS l JOIN seen AS s ON s.key = l.source JOIN seen AS t ON t.key = l.target) AS links,
       (SELECT count(*) FROM revision AS r JOIN seen AS s ON s.key = r.memory) AS revisions,
       (SELECT count(*) FROM seen WHERE sensitive AND state != 'deleted') AS sensitive,
       (SELECT count(*) FROM passage AS p JOIN seen AS s ON s.key = p.memory) AS passages,
       (SELECT count(DISTINCT concept) FROM mention AS n JOIN seen AS s ON s.key = n.memory WHERE role > 0) AS concepts,
       (SELECT count(*) FROM mention AS n JOIN seen AS s ON s.key = n.memory) AS mentions,
       (SELECT count(*) FROM statement AS n JOIN seen AS s ON s.key = n.memory) AS statements;
