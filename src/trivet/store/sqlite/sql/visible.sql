-- The one visibility predicate. Every read of memories goes through it; a NULL parameter does not restrict.

-- name: page
SELECT * FROM memory AS m WHERE {visible}
ORDER BY {order} LIMIT :limit OFFSET :offset;

-- name: total
SELECT count(*) FROM memory AS m WHERE {visible};

-- name: keys
SELECT m.key, m.length FROM memory AS m WHERE {visible};

-- name: changed_keys
SELECT m.key, m.length FROM memory AS m
WHERE m.key IN (SELECT value FROM json_each(:keys)) AND {visible};

-- name: bounds
SELECT key, valid_from, valid_to FROM memory WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL;

-- name: bounds_of
SELECT key, valid_from, valid_to FROM memory
WHERE key IN (SELECT value FROM json_each(:keys)) AND (valid_from IS NOT NULL OR valid_to IS NOT NULL);

-- name: predicate
(:scope IS NULL OR m.scope = :scope OR substr(m.scope, 1, length(:scope) + 1) = :scope || '/')
AND (:categories IS NULL OR m.category IN (SELECT value FROM json_each(:categories)))
AND m.state IN (SELECT value FROM json_each(:states))
AND (:source IS NULL OR m.source_uri = :source
     OR (substr(:source, -1) = '/' AND substr(m.source_uri, 1, length(:source)) = :source))
AND (:created_after IS NULL OR m.created_at >= :created_after)
AND (:created_before IS NULL OR m.created_at < :created_before)
AND (:as_of IS NULL OR (coalesce(m.valid_from, m.created_at) <= :as_of AND (m.valid_to IS NULL OR m.valid_to > :as_of)))
AND (:moment IS NULL OR ((m.valid_from IS NULL OR m.valid_from <= :moment) AND (m.valid_to IS NULL OR m.valid_to > :moment)))
AND (:tags IS NULL OR (SELECT count(*) FROM memory_tag AS t WHERE t.memory = m.key
                       AND t.tag IN (SELECT value FROM json_each(:tags))) = json_array_length(:tags));
