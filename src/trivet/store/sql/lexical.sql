-- name: insert
-- Every store writes its own.

-- name: delete
-- Every store writes its own.

-- name: postings
-- Every store writes its own.

-- name: documents_of
-- Every store writes its own.

-- name: documents
-- Every store writes its own.

-- name: insert_fingerprint
INSERT INTO fingerprint (hash, memory) SELECT wanted.value, :key FROM {each_key:hashes} WHERE true
ON CONFLICT DO NOTHING;

-- name: delete_fingerprint
DELETE FROM fingerprint WHERE memory = :key;

-- name: similar
-- Only the latest memories per hash: some word pairs are in every tenth text, which would slow down
-- saving.
SELECT m.id FROM (
    SELECT f.memory, count(*) AS shared FROM {each_key:hashes} JOIN fingerprint AS f
    ON f.hash = wanted.value AND f.memory > coalesce((
        SELECT g.memory FROM fingerprint AS g WHERE g.hash = wanted.value ORDER BY g.memory DESC LIMIT 1 OFFSET :latest
    ), 0)
    GROUP BY f.memory HAVING count(*) >= :shared
) AS alike JOIN memory AS m ON m.key = alike.memory
WHERE m.id != :id AND {readable} ORDER BY alike.shared DESC, alike.memory LIMIT :limit;

-- name: clear_fingerprints
DELETE FROM fingerprint;

-- name: clear
-- Every store writes its own.

-- name: missing
-- Every store writes its own.

-- name: orphans
-- Every store writes its own.
