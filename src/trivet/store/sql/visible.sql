-- The one visibility predicate, used by every read of memories. A NULL parameter does not restrict.

-- name: page
SELECT {memory} FROM memory AS m WHERE {visible}
ORDER BY {order} LIMIT :limit OFFSET :offset;

-- name: page_after
-- The memories after a given one in the order, found by the index without reading earlier ones.
SELECT {memory} FROM memory AS m WHERE (m.created_at, m.id) < (:created_at, :id) AND {visible}
ORDER BY {order} LIMIT :limit OFFSET :offset;

-- name: page_after_by_importance
SELECT {memory} FROM memory AS m WHERE (m.importance, m.created_at, m.id) < (:importance, :created_at, :id) AND {visible}
ORDER BY {order} LIMIT :limit OFFSET :offset;

-- name: total
SELECT count(*) FROM memory AS m WHERE {visible};

-- name: keys
-- Cast to numbers: other values in a damaged file must not make a recall fail.
SELECT m.key, CAST(m.length AS integer), CAST(m.importance AS double precision) FROM memory AS m WHERE {visible};

-- name: columns
SELECT key, CAST(length AS integer), state, scope, created_at, CAST(importance AS double precision) FROM memory;

-- name: highest_key
SELECT coalesce(max(key), -1) FROM memory;

-- name: changed_keys
SELECT m.key, CAST(m.length AS integer), CAST(m.importance AS double precision) FROM memory AS m
WHERE m.key {in_keys:keys} AND {visible};

-- name: bounds
SELECT key, valid_from, valid_to FROM memory WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL;

-- name: bounds_of
SELECT key, valid_from, valid_to FROM memory
WHERE key {in_keys:keys} AND (valid_from IS NOT NULL OR valid_to IS NOT NULL);

-- name: tags
-- Every store writes its own.

-- name: categories
SELECT m.category, count(*) FROM memory AS m WHERE {visible} GROUP BY m.category;

-- name: sources
SELECT m.source_uri, count(*) FROM memory AS m
WHERE m.source_uri IS NOT NULL AND (:text::text IS NULL OR {position}(lower(m.source_uri), lower(:text)) > 0)
AND {visible} GROUP BY m.source_uri ORDER BY 2 DESC, 1 LIMIT :limit;

-- name: days
SELECT {day_of_creation} AS day, count(*) FROM memory AS m WHERE {visible}
GROUP BY day ORDER BY day DESC LIMIT :limit;

-- name: day_of_creation
-- The day, as text, on a clock :utc_offset minutes ahead of UTC. Every store writes its own.

-- name: of_sources
-- Memories of these sources or ids, and whether the filter lets them through.
SELECT m.id, m.source_uri, m.source_start_line, m.source_end_line, m.state, m.sensitive, ({visible}) AS shown
FROM memory AS m
WHERE (m.source_uri {in_texts:names} OR m.id {in_texts:names})
AND {readable};

-- name: visible
{readable}
AND (:scope::text IS NULL OR m.scope = :scope OR substr(m.scope, 1, length(:scope) + 1) = :scope || '/')
AND (:categories::text IS NULL OR m.category {in_texts:categories})
AND m.state {in_texts:states}
AND (:source::text IS NULL OR m.source_uri = :source
     OR (substr(:source, length(:source)) = '/' AND substr(m.source_uri, 1, length(:source)) = :source))
AND (:created_after::text IS NULL OR m.created_at >= :created_after)
AND (:created_before::text IS NULL OR m.created_at < :created_before)
AND (:as_of::text IS NULL OR (coalesce(m.valid_from, m.created_at) <= :as_of AND (m.valid_to IS NULL OR m.valid_to > :as_of)))
AND (:moment::text IS NULL OR ((m.valid_from IS NULL OR m.valid_from <= :moment) AND (m.valid_to IS NULL OR m.valid_to > :moment)))
AND (:tags::text IS NULL OR {has_all_tags});

-- name: has_all_tags
-- Every store writes its own.

-- name: readable
-- The owner, then a share of the memory, then a share of one of its tags; everybody if there is no
-- viewer. Sensitive memories are their owner's alone: even masked, they could be found by their
-- words and so be guessed. Memories that their owner has forgotten are hidden from others.
(:viewer::text IS NULL OR m.owner = :viewer
 OR (NOT m.sensitive AND m.state != 'deleted' AND (
     EXISTS (SELECT 1 FROM share AS s WHERE s.memory = m.key AND s.grantee IN (:viewer, '*'))
     OR {shared_by_tag})));

-- name: shared_by_tag
-- Shared with the viewer, or with all.
EXISTS (SELECT 1 FROM memory_tag AS t JOIN tag_share AS s ON s.tag = t.tag
        WHERE t.memory = m.key AND s.owner = m.owner AND s.grantee IN (:viewer, '*'));

-- name: writable
SELECT 1 FROM memory AS m WHERE m.key = :key
AND (m.owner = :viewer
     OR EXISTS (SELECT 1 FROM share AS s WHERE s.memory = m.key AND s.grantee IN (:viewer, '*') AND s.permission = 'write')
     OR EXISTS (SELECT 1 FROM memory_tag AS t JOIN tag_share AS s ON s.tag = t.tag
                WHERE t.memory = m.key AND s.owner = m.owner AND s.grantee IN (:viewer, '*') AND s.permission = 'write'));

-- name: owned
SELECT 1 FROM memory WHERE key = :key AND owner = :viewer;
