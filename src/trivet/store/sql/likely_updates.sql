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
-- The latest first. Where there is an embedder, those that have their vectors: the nearest are found by these.
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
-- Where the newer memory surely updates another one, this pair is contested: it is doubted three times as much.
SELECT n.id, o.id, u.probability,
  EXISTS (
    SELECT 1 FROM likely_update AS other JOIN memory AS m ON m.key = other.older
    WHERE other.newer = u.newer AND 3 * (1 - other.probability) < 1 - u.probability AND {readable}
  )
FROM likely_update AS u
JOIN memory AS n ON n.key = u.newer JOIN memory AS o ON o.key = u.older
WHERE o.id {in_texts:ids}
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = u.newer AND {readable})
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = u.older AND {readable})
ORDER BY o.id, u.probability DESC, n.id;

-- name: pending
SELECT count(*) FROM comparison;
