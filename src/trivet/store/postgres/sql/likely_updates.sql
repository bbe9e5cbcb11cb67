-- name: enqueue
INSERT INTO comparison (memory, revision)
SELECT m.key, m.revision FROM json_to_recordset(:rows) AS r (key bigint) JOIN memory AS m ON m.key = r.key
WHERE m.state != 'deleted' AND NOT m.sensitive
ON CONFLICT (tenant, memory) DO UPDATE SET revision = excluded.revision;
