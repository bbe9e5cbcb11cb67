-- name: insert
-- Every store writes its own.

-- name: delete
-- Every store writes its own.

-- name: postings
-- Every store writes its own.

-- name: document
-- Every store writes its own.

-- name: insert_fingerprint
INSERT INTO fingerprint (hash, memory) SELECT wanted.value, :key FROM {each_key:hashes} WHERE true
ON CONFLICT DO NOTHING;

-- name: delete_fingerprint
DELETE FROM fingerprint WHERE memory = :key;

-- name: similar
SELECT m.id FROM fingerprint AS f JOIN memory AS m ON m.key = f.memory
WHERE f.hash {in_keys:hashes} AND m.id != :id AND {readable}
GROUP BY f.memory, m.id HAVING count(*) >= :shared ORDER BY count(*) DESC, f.memory LIMIT :limit;

-- name: clear_fingerprints
DELETE FROM fingerprint;

-- name: clear
-- Every store writes its own.

-- name: missing
-- Every store writes its own.

-- name: orphans
-- Every store writes its own.
