-- name: finish
DELETE FROM job
WHERE model = :model AND (memory, revision) IN (SELECT value ->> 'memory', value ->> 'revision' FROM json_each(:rows))
RETURNING memory;
