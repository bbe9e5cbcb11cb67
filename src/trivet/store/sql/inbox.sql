-- name: columns
id, owner, content, kind, reason, action, memory, category, tags, scope, source, state, created_at, decided_at, stored,
curated_at;

-- name: insert
INSERT INTO proposal (id, owner, content, kind, reason, action, memory, category, tags, scope, source, state,
                      created_at, said)
VALUES (:id, :owner, :content, :kind, :reason, :action, :memory, :category, :tags, :scope, :source, :state,
        :created_at, :said);

-- name: by_id
SELECT {columns} FROM proposal WHERE id = :id AND (:viewer::text IS NULL OR owner = :viewer);

-- name: starting_with
SELECT id FROM proposal WHERE id >= :start AND id < :stop AND (:viewer::text IS NULL OR owner = :viewer)
ORDER BY id LIMIT :limit;

-- name: page
SELECT {columns} FROM proposal WHERE state = :state AND (:viewer::text IS NULL OR owner = :viewer)
ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset;

-- name: total
SELECT count(*) FROM proposal WHERE state = :state AND (:viewer::text IS NULL OR owner = :viewer);

-- name: decide
UPDATE proposal SET state = :state, decided_at = :decided_at, stored = :stored WHERE id = :id;

-- name: reopen
UPDATE proposal SET state = 'waiting', decided_at = NULL WHERE id = :id;

-- name: rewrite
UPDATE proposal SET content = :content, reason = :reason, action = :action, memory = :memory, category = :category,
       tags = :tags, curated_at = :curated_at, said = :said
WHERE id = :id AND state = 'waiting';

-- name: same
SELECT {columns} FROM proposal WHERE owner = :owner AND said = :said ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: latest
SELECT {columns} FROM proposal WHERE owner = :owner ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: uncurated
SELECT {columns} FROM proposal WHERE state = 'waiting' AND curated_at IS NULL AND (:viewer::text IS NULL OR owner = :viewer)
ORDER BY created_at, id LIMIT :limit;

-- name: purge
DELETE FROM proposal WHERE stored = :id;
