-- name: enqueue
INSERT INTO job (memory, model, revision)
SELECT m.key, e.model, m.revision
FROM json_to_recordset(:rows) AS r (key bigint) JOIN memory AS m ON m.key = r.key, embedding_model AS e
WHERE m.state != 'deleted' AND NOT m.sensitive
ON CONFLICT (tenant, memory, model) DO UPDATE
SET revision = excluded.revision, attempts = 0, not_before = 0, last_error = NULL;

-- name: finish
DELETE FROM job AS j USING json_to_recordset(:rows) AS r (memory bigint, revision integer)
WHERE j.memory = r.memory AND j.revision = r.revision AND j.model = :model RETURNING j.memory;
