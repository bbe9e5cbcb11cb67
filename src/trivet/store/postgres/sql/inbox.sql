-- name: insert
INSERT INTO proposal (id, owner, content, kind, reason, action, memory, category, tags, scope, source, state,
                      created_at, said)
VALUES (:id, :owner, :content, :kind, :reason, :action, :memory, :category, :tags, :scope, :source, :state,
        :created_at, :said);

-- name: by_id
SELECT * FROM proposal WHERE id = :id AND (:viewer::text IS NULL OR owner = :viewer);

-- name: page
SELECT * FROM proposal WHERE state = :state AND (:viewer::text IS NULL OR owner = :viewer)
ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset;

-- name: total
SELECT count(*) FROM proposal WHERE state = :state AND (:viewer::text IS NULL OR owner = :viewer);

-- name: decide
UPDATE proposal SET state = :state, decided_at = :decided_at, stored = :stored WHERE id = :id;

-- name: rewrite
UPDATE proposal SET content = :content, reason = :reason, action = :action, memory = :memory, category = :category,
       tags = :tags, curated_at = :curated_at, said = :said
WHERE id = :id AND state = 'waiting';

-- name: same
SELECT * FROM proposal WHERE owner = :owner AND said = :said ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: latest
SELECT * FROM proposal WHERE owner = :owner ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: uncurated
SELECT * FROM proposal WHERE state = 'waiting' AND curated_at IS NULL AND (:viewer::text IS NULL OR owner = :viewer)
ORDER BY created_at, id LIMIT :limit;

-- name: purge
DELETE FROM proposal WHERE stored = :id;

-- name: spend
INSERT INTO meta (name, value) VALUES (:name, (:tokens::bigint)::text)
ON CONFLICT (tenant, name) DO UPDATE SET value = (meta.value::bigint + :tokens::bigint)::text
WHERE meta.value::bigint + :tokens::bigint <= :most::bigint;

-- name: spent
SELECT value::bigint FROM meta WHERE name = :name;

-- name: forget_earlier_days
DELETE FROM meta WHERE name LIKE 'capture tokens %' AND name != :name;
