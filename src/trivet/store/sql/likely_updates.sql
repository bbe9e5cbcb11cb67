-- name: enqueue
INSERT INTO comparison (memory, revision)
SELECT key, revision FROM memory WHERE key = :key AND state != 'deleted' AND NOT sensitive
ON CONFLICT ({tenant}memory) DO UPDATE SET revision = excluded.revision;

-- name: enqueue_all
INSERT INTO comparison (memory, revision)
SELECT key, revision FROM memory WHERE state != 'deleted' AND NOT sensitive
ON CONFLICT ({tenant}memory) DO UPDATE SET revision = excluded.revision;

-- name: cancel
DELETE FROM comparison WHERE memory = :key;

-- name: clear
DELETE FROM likely_update WHERE newer = :key OR older = :key;

-- name: clear_all
DELETE FROM likely_update;

-- name: waiting
-- Latest first. With an embedder, only memories with vectors, which find the nearest ones.
SELECT c.memory, c.revision, m.id FROM comparison AS c JOIN memory AS m ON m.key = c.memory
WHERE :model::bigint IS NULL
   OR EXISTS (SELECT 1 FROM passage AS p WHERE p.memory = c.memory AND p.model = :model)
ORDER BY c.memory DESC LIMIT :limit;

-- name: finish
DELETE FROM comparison WHERE memory = (SELECT key FROM memory WHERE id = :id) AND revision = :revision;

-- name: put
INSERT INTO likely_update (newer, older, probability)
SELECT n.key, o.key, :probability::double precision FROM memory AS n, memory AS o
WHERE n.id = :newer AND o.id = :older AND n.revision = :newer_revision AND o.revision = :older_revision
ON CONFLICT ({tenant}newer, older) DO UPDATE SET probability = excluded.probability;

-- name: touching
-- A pair is contested if the newer memory updates another one with less than a third of the doubt
-- (1 - probability). The viewer is checked once for all pairs: usually there is none, and on a
-- server this check cost most.
WITH pair AS MATERIALIZED (
    SELECT u.newer, u.older, u.probability FROM likely_update AS u JOIN memory AS o ON o.key = u.older
    WHERE o.id {in_texts:ids}
), beside AS MATERIALIZED (
    SELECT newer, older, probability FROM likely_update WHERE newer IN (SELECT newer FROM pair)
), seen AS MATERIALIZED (
    SELECT m.key, m.id FROM memory AS m
    WHERE m.key IN (SELECT newer FROM beside UNION SELECT older FROM beside) AND {readable}
)
SELECT n.id, o.id, pair.probability,
  EXISTS (
    SELECT 1 FROM beside JOIN seen ON seen.key = beside.older
    WHERE beside.newer = pair.newer AND 3 * (1 - beside.probability) < 1 - pair.probability
  )
FROM pair JOIN seen AS n ON n.key = pair.newer JOIN seen AS o ON o.key = pair.older
ORDER BY o.id, pair.probability DESC, n.id;

-- name: pending
SELECT count(*) FROM comparison;
