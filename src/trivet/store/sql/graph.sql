-- name: enqueue
INSERT INTO reading (memory, reader, revision)
SELECT key, 'rules', revision FROM memory WHERE key = :key AND state != 'deleted' AND NOT sensitive
ON CONFLICT ({tenant}memory, reader) DO UPDATE
SET revision = excluded.revision, attempts = 0, not_before = 0, last_error = NULL;

-- name: enqueue_all
INSERT INTO reading (memory, reader, revision)
SELECT key, :reader::text, revision FROM memory WHERE state != 'deleted' AND NOT sensitive
ON CONFLICT ({tenant}memory, reader) DO UPDATE
SET revision = excluded.revision, attempts = 0, not_before = 0, last_error = NULL;

-- name: enqueue_unread
-- Memories that no language model has read in their present revision. A reading that finds nothing
-- leaves a mark too.
INSERT INTO reading (memory, reader, revision)
SELECT m.key, 'triples', m.revision FROM memory AS m
WHERE m.state != 'deleted' AND NOT m.sensitive
  AND NOT EXISTS (SELECT 1 FROM was_read AS r WHERE r.memory = m.key AND r.reader = 'triples' AND r.revision = m.revision)
ON CONFLICT DO NOTHING;

-- name: mark_read
INSERT INTO was_read (memory, reader, revision) VALUES (:memory, :reader, :revision)
ON CONFLICT ({tenant}memory, reader) DO UPDATE SET revision = excluded.revision;

-- name: cancel
DELETE FROM reading WHERE memory = :key;

-- name: next_due
-- Seconds until the first and the last are due, each found by the index.
SELECT (SELECT min(not_before) FROM reading WHERE reader = :reader) - {epoch},
       (SELECT max(not_before) FROM reading WHERE reader = :reader) - {epoch};

-- name: take_over
-- A longer wait than any delay was written under a clock that has been set back since.
UPDATE reading SET not_before = 0 WHERE reader = :reader AND not_before > {epoch} + :longest::float8;

-- name: due
SELECT r.memory, r.revision, r.attempts, m.title, m.content, m.tags, coalesce(m.valid_from, m.created_at) AS since
FROM reading AS r JOIN memory AS m ON m.key = r.memory
WHERE r.reader = :reader AND r.not_before <= {epoch} AND NOT m.sensitive AND m.state != 'deleted'
ORDER BY r.not_before, r.memory LIMIT :limit
{skip_locked:r};

-- name: postpone
UPDATE reading SET not_before = {epoch} + :seconds::float8 WHERE reader = :reader AND memory {in_keys:keys};

-- name: release
UPDATE reading SET not_before = 0 WHERE reader = :reader AND memory {in_keys:keys};

-- name: finish
-- Every store writes its own.

-- name: fail
UPDATE reading SET attempts = attempts + 1, last_error = :error, not_before = {epoch} + :seconds::float8
WHERE memory = :memory AND reader = :reader AND revision = :revision;

-- name: pending
SELECT (SELECT count(*) FROM reading WHERE reader = :reader),
       (SELECT count(*) FROM reading WHERE reader = :reader AND attempts > 0),
       (SELECT last_error FROM reading WHERE reader = :reader AND attempts > 0 ORDER BY not_before DESC LIMIT 1);

-- name: counted_up_to
SELECT count(*) FROM (SELECT 1 FROM reading WHERE reader = :reader LIMIT :most) AS waiting;

-- name: insert_concept
INSERT INTO concept (concept, name) VALUES (:concept, :name);

-- name: concepts_by_name
SELECT name, concept FROM concept WHERE name {in_texts:names};

-- name: set_mention
INSERT INTO mention (memory, concept, reader, role, kind, label, form)
VALUES (:memory, :concept, :reader, :role, :kind, :label, :form)
ON CONFLICT ({tenant}memory, concept, reader) DO UPDATE
SET role = excluded.role, kind = excluded.kind, label = excluded.label, form = excluded.form;

-- name: insert_mention
{set_mention};

-- name: concepts_of_memories
SELECT concept FROM mention WHERE memory {in_keys:keys}
UNION SELECT source FROM statement WHERE memory {in_keys:keys}
UNION SELECT target FROM statement WHERE memory {in_keys:keys};

-- name: concepts_of_memory
SELECT concept FROM mention WHERE memory = :key
UNION SELECT source FROM statement WHERE memory = :key
UNION SELECT target FROM statement WHERE memory = :key;

-- name: delete_mentions
DELETE FROM mention WHERE memory = :key;

-- name: delete_mentions_of_reader
DELETE FROM mention WHERE memory {in_keys:keys} AND reader = :reader;

-- name: delete_statements_of
DELETE FROM statement WHERE memory {in_keys:keys};

-- name: delete_statements
DELETE FROM statement WHERE memory = :key;

-- name: delete_orphans
DELETE FROM concept WHERE concept {in_keys:concepts}
  AND NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.concept = concept.concept)
  AND NOT EXISTS (SELECT 1 FROM statement AS s WHERE s.source = concept.concept OR s.target = concept.concept);

-- name: insert_statement
INSERT INTO statement (source, relation, target, memory, weight, single, valid_from, valid_to, recorded_at)
VALUES (:source, :relation, :target, :memory, :weight, :single, :valid_from, :valid_to, :recorded_at)
ON CONFLICT ({tenant}source, relation, target, memory, valid_from) DO UPDATE
SET weight = excluded.weight, single = excluded.single, valid_to = excluded.valid_to, recorded_at = excluded.recorded_at;

-- name: all_mentions
-- One integer per row is the cheapest result to read: memory, concept (28 bits), role (2 bits).
SELECT (memory << 30) | (concept << 2) | max(role) FROM mention GROUP BY memory, concept;

-- name: mentions_of
SELECT memory, concept, max(role) AS role FROM mention WHERE memory {in_keys:keys}
GROUP BY memory, concept;

-- name: all_links
SELECT source, target FROM link;

-- name: links_of
SELECT source, target FROM link WHERE source {in_keys:keys}
UNION SELECT source, target FROM link WHERE target {in_keys:keys};

-- name: concepts_of_forms
SELECT wanted.value, coalesce(
    (SELECT m.concept FROM mention AS m WHERE m.form = wanted.value ORDER BY m.concept LIMIT 1),
    (SELECT c.concept FROM concept AS c WHERE c.name = wanted.value))
FROM {each_text:forms};

-- name: labels
SELECT concept, min(label) FROM mention
WHERE concept {in_keys:concepts} AND memory {in_keys:memories}
GROUP BY concept;

-- name: orphans
SELECT count(*) FROM mention AS n JOIN memory AS m ON m.key = n.memory WHERE m.state = 'deleted' OR m.sensitive;

-- name: unaccounted
SELECT count(*) FROM concept AS c
WHERE NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.concept = c.concept)
  AND NOT EXISTS (SELECT 1 FROM statement AS s WHERE s.source = c.concept OR s.target = c.concept);

-- name: missing
-- The mark shows that a memory without mentions was read.
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
