-- name: last_numbers
-- Every store writes its own.

-- name: set_derived
UPDATE memory SET length = :length, times = :times WHERE key = :key;

-- name: count_jobs
SELECT count(*) FROM job;

-- name: set_meta
INSERT INTO meta (name, value) VALUES (:name, :value)
ON CONFLICT ({tenant}name) DO UPDATE SET value = excluded.value;

-- name: drop_meta
DELETE FROM meta WHERE name = :name AND value = :value;

-- name: add_meta
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING;

-- name: get_meta
SELECT value FROM meta WHERE name = :name;

-- name: states_off
SELECT count(*) FROM memory AS m
WHERE m.state IN ('active', 'superseded') AND (m.state = 'superseded') != EXISTS (
    SELECT 1 FROM link AS l JOIN memory AS s ON s.key = l.source
    WHERE l.target = m.key AND l.kind = 'supersedes' AND s.state != 'deleted');

-- name: without_revision
SELECT count(*) FROM memory AS m
WHERE NOT EXISTS (SELECT 1 FROM revision AS r WHERE r.memory = m.key AND r.revision = m.revision);
