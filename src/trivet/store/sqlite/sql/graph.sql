-- name: enqueue
INSERT OR REPLACE INTO reading (memory, reader, revision)
SELECT key, 'rules', revision FROM memory WHERE key = :key AND state != 'deleted' AND NOT sensitive;

-- name: enqueue_all
INSERT OR REPLACE INTO reading (memory, reader, revision)
SELECT key, :reader, revision FROM memory WHERE state != 'deleted' AND NOT sensitive;

-- name: enqueue_unread
-- Those that no language model has read in their present revision. A reading leaves a mark, also when it finds nothing.
INSERT OR IGNORE INTO reading (memory, reader, revision)
SELECT m.key, 'triples', m.revision FROM memory AS m
WHERE m.state != 'deleted' AND NOT m.sensitive
  AND NOT EXISTS (SELECT 1 FROM was_read AS r WHERE r.memory = m.key AND r.reader = 'triples' AND r.revision = m.revision);

-- name: mark_read
INSERT OR REPLACE INTO was_read (memory, reader, revision) VALUES (:memory, :reader, :revision);

-- name: cancel
DELETE FROM reading WHERE memory = :key;

-- name: next_due
SELECT min(not_before) FROM reading WHERE reader = :reader;

-- name: due
SELECT r.memory, r.revision, r.attempts, m.title, m.content, m.tags, coalesce(m.valid_from, m.created_at) AS since
FROM reading AS r JOIN memory AS m ON m.key = r.memory
WHERE r.reader = :reader AND r.not_before <= :moment AND NOT m.sensitive AND m.state != 'deleted'
ORDER BY r.not_before, r.memory LIMIT :limit;

-- name: postpone
UPDATE reading SET not_before = :not_before WHERE reader = :reader AND memory IN (SELECT value FROM json_each(:keys));

-- name: finish
DELETE FROM reading
WHERE reader = :reader AND (memory, revision) IN (SELECT value ->> 'memory', value ->> 'revision' FROM json_each(:rows))
RETURNING memory, revision;

-- name: fail
UPDATE reading SET attempts = attempts + 1, last_error = :error, not_before = :not_before
WHERE memory = :memory AND reader = :reader AND revision = :revision;

-- name: pending
SELECT count(*), coalesce(sum(attempts > 0), 0),
       (SELECT last_error FROM reading WHERE reader = :reader AND attempts > 0 ORDER BY not_before DESC LIMIT 1)
FROM reading WHERE reader = :reader;

-- name: insert_concept
INSERT INTO concept (concept, name) VALUES (:concept, :name);

-- name: concepts_by_name
SELECT name, concept FROM concept WHERE name IN (SELECT value FROM json_each(:names));

-- name: insert_mention
INSERT OR REPLACE INTO mention (memory, concept, reader, role, kind, label, form)
VALUES (:memory, :concept, :reader, :role, :kind, :label, :form);

-- name: concepts_of_memories
SELECT concept FROM mention WHERE memory IN (SELECT value FROM json_each(:keys))
UNION SELECT source FROM statement WHERE memory IN (SELECT value FROM json_each(:keys))
UNION SELECT target FROM statement WHERE memory IN (SELECT value FROM json_each(:keys));

-- name: concepts_of_memory
SELECT concept FROM mention WHERE memory = :key
UNION SELECT source FROM statement WHERE memory = :key
UNION SELECT target FROM statement WHERE memory = :key;

-- name: delete_mentions
DELETE FROM mention WHERE memory = :key;

-- name: delete_mentions_of_reader
DELETE FROM mention WHERE memory IN (SELECT value FROM json_each(:keys)) AND reader = :reader;

-- name: delete_statements_of
DELETE FROM statement WHERE memory IN (SELECT value FROM json_each(:keys));

-- name: delete_statements
DELETE FROM statement WHERE memory = :key;

-- name: delete_orphans
DELETE FROM concept WHERE concept IN (SELECT value FROM json_each(:concepts))
  AND NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.concept = concept.concept)
  AND NOT EXISTS (SELECT 1 FROM statement AS s WHERE s.source = concept.concept OR s.target = concept.concept);

-- name: insert_statement
INSERT OR REPLACE INTO statement (source, relation, target, memory, weight, single, valid_from, valid_to, recorded_at)
VALUES (:source, :relation, :target, :memory, :weight, :single, :valid_from, :valid_to, :recorded_at);

-- name: all_mentions
-- One integer a row is the cheapest thing to carry out of SQLite: memory, concept (28 bits), role (2 bits).
SELECT (memory << 30) | (concept << 2) | max(role) FROM mention GROUP BY memory, concept;

-- name: mentions_of
SELECT memory, concept, max(role) AS role FROM mention WHERE memory IN (SELECT value FROM json_each(:keys))
GROUP BY memory, concept;

-- name: all_links
SELECT source, target FROM link;

-- name: links_of
SELECT source, target FROM link WHERE source IN (SELECT value FROM json_each(:keys))
UNION SELECT source, target FROM link WHERE target IN (SELECT value FROM json_each(:keys));

-- name: concepts_of_forms
SELECT wanted.value, coalesce(
    (SELECT m.concept FROM mention AS m WHERE m.form = wanted.value LIMIT 1),
    (SELECT c.concept FROM concept AS c WHERE c.name = wanted.value))
FROM json_each(:forms) AS wanted;

-- name: labels
SELECT concept, min(label) FROM mention
WHERE concept IN (SELECT value FROM json_each(:concepts)) AND memory IN (SELECT value FROM json_each(:memories))
GROUP BY concept;

-- name: orphans
SELECT count(*) FROM mention AS n JOIN memory AS m ON m.key = n.memory WHERE m.state = 'deleted' OR m.sensitive;

-- name: unaccounted
SELECT count(*) FROM concept AS c
WHERE NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.concept = c.concept)
  AND NOT EXISTS (SELECT 1 FROM statement AS s WHERE s.source = c.concept OR s.target = c.concept);

-- name: missing
-- A memory that was read for nothing leaves no mention; the mark says that it was read.
SELECT count(*) FROM memory AS m
WHERE m.state != 'deleted' AND NOT m.sensitive
  AND NOT EXISTS (SELECT 1 FROM reading AS r WHERE r.memory = m.key AND r.reader = 'rules')
  AND NOT EXISTS (SELECT 1 FROM was_read AS r WHERE r.memory = m.key AND r.reader = 'rules' AND r.revision = m.revision);

-- name: forget_hidden_mentions
DELETE FROM mention WHERE memory IN (SELECT key FROM memory WHERE state = 'deleted' OR sensitive);

-- name: forget_hidden_statements
DELETE FROM statement WHERE memory IN (SELECT key FROM memory WHERE state = 'deleted' OR sensitive);

-- name: forget_orphans
DELETE FROM concept
WHERE NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.concept = concept.concept)
  AND NOT EXISTS (SELECT 1 FROM statement AS s WHERE s.source = concept.concept OR s.target = concept.concept);
