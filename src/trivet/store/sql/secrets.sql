-- name: insert
INSERT INTO secret (memory, kind, number, revision, field, key, nonce, sealed)
VALUES (:memory, :kind, :number, :revision, :field, :key, :nonce, :sealed);

-- name: of
SELECT s.revision, s.field, s.kind, s.number, s.key, s.nonce, s.sealed
FROM secret AS s JOIN memory AS m ON m.key = s.memory WHERE m.id = :id AND {readable} ORDER BY s.kind, s.number;

-- name: not_under
SELECT m.id, s.revision, s.field, s.kind, s.number, s.key, s.nonce, s.sealed
FROM secret AS s JOIN memory AS m ON m.key = s.memory WHERE s.key != :key LIMIT :limit;

-- name: keys
SELECT DISTINCT key FROM secret ORDER BY key;

-- name: retire
INSERT INTO meta (name, value) VALUES (:name, :by) ON CONFLICT DO NOTHING;

-- name: retired_by
SELECT value FROM meta WHERE name = :name;

-- name: reseal
UPDATE secret SET key = :key, nonce = :nonce, sealed = :sealed
WHERE memory = (SELECT key FROM memory WHERE id = :id) AND kind = :kind AND number = :number;
