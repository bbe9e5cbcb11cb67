-- name: finish
DELETE FROM reading
WHERE reader = :reader AND (memory, revision) IN (SELECT value ->> 'memory', value ->> 'revision' FROM json_each(:rows))
RETURNING memory, revision;
