-- name: last
SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1;

-- name: note
INSERT INTO audit (sequence, at, actor, act, memory, detail, hash)
VALUES (:sequence, :at, :actor, :act, :memory, :detail, :hash);

-- name: noted
SELECT at, actor, act, memory, detail FROM audit
WHERE :actor::text IS NULL OR actor = :actor ORDER BY sequence DESC LIMIT :limit;

-- name: count
SELECT count(*) FROM (SELECT at, actor, act FROM audit ORDER BY sequence DESC LIMIT :latest) AS a
WHERE a.actor = :actor AND a.act = :act AND a.at >= :since;

-- name: after
SELECT sequence, at, actor, act, memory, detail, hash FROM audit WHERE sequence > :sequence ORDER BY sequence LIMIT :limit;
