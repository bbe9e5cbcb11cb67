-- name: enqueue
INSERT INTO job (memory, model, revision)
SELECT m.key, e.model, m.revision FROM memory AS m, embedding_model AS e
WHERE m.key = :key AND m.state != 'deleted' AND NOT m.sensitive
ON CONFLICT ({tenant}memory, model) DO UPDATE
SET revision = excluded.revision, attempts = 0, not_before = 0, last_error = NULL;

-- name: enqueue_model
INSERT INTO job (memory, model, revision)
SELECT key, :model::bigint, revision FROM memory WHERE state != 'deleted' AND NOT sensitive
ON CONFLICT ({tenant}memory, model) DO UPDATE
SET revision = excluded.revision, attempts = 0, not_before = 0, last_error = NULL;

-- name: cancel
DELETE FROM job WHERE memory = :key;

-- name: take_over
-- A longer wait than any delay was written under a clock that has been set back since.
UPDATE job SET not_before = 0 WHERE model = :model AND not_before > {epoch} + :longest::float8;

-- name: oldest_due
SELECT j.memory, m.owner, length(m.content) FROM job AS j JOIN memory AS m ON m.key = j.memory
WHERE j.model = :model AND j.not_before <= {epoch} ORDER BY j.not_before, j.memory LIMIT :limit;

-- name: newest_due
SELECT j.memory, m.owner, length(m.content) FROM job AS j JOIN memory AS m ON m.key = j.memory
WHERE j.model = :model AND j.not_before <= {epoch} ORDER BY j.memory DESC LIMIT :limit;

-- name: due
-- Of the given memories, in their order, those that no process has leased meanwhile.
SELECT j.memory, j.revision, j.attempts, m.title, m.content
FROM {each_key:keys} JOIN job AS j ON j.memory = wanted.value JOIN memory AS m ON m.key = j.memory
WHERE j.model = :model AND j.not_before <= {epoch} ORDER BY wanted.key LIMIT :limit
{skip_locked:j};

-- name: newest
SELECT j.memory, j.revision, j.attempts, m.title, m.content, m.id FROM job AS j JOIN memory AS m ON m.key = j.memory
WHERE j.model = :model ORDER BY j.memory DESC LIMIT :limit;

-- name: postpone
UPDATE job SET not_before = {epoch} + :seconds::float8 WHERE model = :model AND memory {in_keys:keys};

-- name: release
UPDATE job SET not_before = 0 WHERE model = :model AND memory {in_keys:keys};

-- name: finish
-- Every store writes its own.

-- name: fail
UPDATE job SET attempts = attempts + 1, last_error = :error, not_before = {epoch} + :seconds::float8
WHERE memory = :memory AND model = :model AND revision = :revision;

-- name: retry_now
UPDATE job SET not_before = 0;

-- name: pending
SELECT (SELECT count(*) FROM job WHERE model = :model),
       (SELECT count(*) FROM job WHERE model = :model AND attempts > 0),
       (SELECT last_error FROM job WHERE model = :model AND attempts > 0 ORDER BY not_before DESC LIMIT 1);

-- name: pending_with_readings
-- The same with the number of memories that wait for the rules, which every answer reports.
SELECT (SELECT count(*) FROM job WHERE model = :model),
       (SELECT count(*) FROM job WHERE model = :model AND attempts > 0),
       (SELECT last_error FROM job WHERE model = :model AND attempts > 0 ORDER BY not_before DESC LIMIT 1),
       (SELECT count(*) FROM reading WHERE reader = 'rules');

-- name: counted_up_to
SELECT count(*) FROM (SELECT 1 FROM job WHERE model = :model LIMIT :most) AS waiting;

-- name: next_due
-- Seconds until the first and the last are due, each found by the index.
SELECT (SELECT min(not_before) FROM job WHERE model = :model) - {epoch},
       (SELECT max(not_before) FROM job WHERE model = :model) - {epoch};
