-- name: insert
INSERT INTO link (source, kind, target, created_at) VALUES (:source, :kind, :target, :created_at)
ON CONFLICT DO NOTHING;

-- name: delete
DELETE FROM link WHERE source = :source AND kind = :kind AND target = :target;

-- name: touching
SELECT l.kind, s.id, t.id, l.created_at FROM link AS l
JOIN memory AS s ON s.key = l.source JOIN memory AS t ON t.key = l.target
WHERE (s.id {in_texts:ids} OR t.id {in_texts:ids})
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.source AND {readable})
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.target AND {readable})
ORDER BY l.created_at, s.id, l.kind, t.id;

-- name: everything
SELECT l.kind, s.id, t.id, l.created_at FROM link AS l
JOIN memory AS s ON s.key = l.source JOIN memory AS t ON t.key = l.target
WHERE EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.source AND {readable})
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.target AND {readable})
ORDER BY l.created_at, s.id, l.kind, t.id;

-- name: any
SELECT EXISTS (SELECT 1 FROM link);

-- name: from_sources
SELECT l.kind, s.id, t.id, l.created_at FROM link AS l
JOIN memory AS s ON s.key = l.source JOIN memory AS t ON t.key = l.target
WHERE s.id {in_texts:ids} AND l.kind = :kind AND t.state != 'deleted'
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.source AND {readable})
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.target AND {readable})
ORDER BY l.created_at, t.id;

-- name: to_targets
SELECT l.kind, s.id, t.id, l.created_at FROM link AS l
JOIN memory AS s ON s.key = l.source JOIN memory AS t ON t.key = l.target
WHERE t.id {in_texts:ids} AND l.kind = :kind AND s.state != 'deleted'
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.source AND {readable})
  AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.target AND {readable})
ORDER BY s.created_at DESC, s.id DESC;

-- name: reaches
WITH RECURSIVE reached (key) AS (
    SELECT :start::bigint
    UNION
    SELECT l.target FROM link AS l JOIN reached AS r ON l.source = r.key WHERE l.kind = :kind
)
SELECT 1 FROM reached WHERE key = :goal LIMIT 1;

-- name: superseded_by_key
SELECT t.key, t.state FROM link AS l JOIN memory AS t ON t.key = l.target
WHERE l.source = :key AND l.kind = 'supersedes';

-- name: living_successor
SELECT 1 FROM link AS l JOIN memory AS s ON s.key = l.source
WHERE l.target = :key AND l.kind = 'supersedes' AND s.state != 'deleted' LIMIT 1;
