-- name: enqueue
INSERT INTO reading (memory, reader, revision)
SELECT m.key, 'rules', m.revision FROM json_to_recordset(:rows) AS r (key bigint) JOIN memory AS m ON m.key = r.key
WHERE m.state != 'deleted' AND NOT m.sensitive
ON CONFLICT (tenant, memory, reader) DO UPDATE
SET revision = excluded.revision, attempts = 0, not_before = 0, last_error = NULL;

-- name: mark_read
INSERT INTO was_read (memory, reader, revision)
SELECT memory, reader, revision FROM json_populate_recordset(NULL::was_read, :rows)
ON CONFLICT (tenant, memory, reader) DO UPDATE SET revision = excluded.revision;

-- name: finish
DELETE FROM reading AS d USING json_to_recordset(:rows) AS r (memory bigint, revision integer)
WHERE d.memory = r.memory AND d.revision = r.revision AND d.reader = :reader RETURNING d.memory, d.revision;

-- name: insert_concept
INSERT INTO concept (concept, name) SELECT concept, name FROM json_populate_recordset(NULL::concept, :rows);

-- name: insert_mention
INSERT INTO mention (memory, concept, reader, role, kind, label, form)
SELECT memory, concept, reader, role, kind, label, form FROM json_populate_recordset(NULL::mention, :rows)
ON CONFLICT (tenant, memory, concept, reader) DO UPDATE
SET role = excluded.role, kind = excluded.kind, label = excluded.label, form = excluded.form;
