-- name: share_memory
INSERT INTO share (memory, grantee, permission, created_at) VALUES (:key, :user, :permission, :created_at)
ON CONFLICT ({tenant}memory, grantee) DO UPDATE SET permission = excluded.permission;

-- name: is_sensitive
SELECT 1 FROM memory WHERE key = :key AND sensitive;

-- name: share_tag
INSERT INTO tag_share (owner, tag, grantee, permission, created_at)
VALUES (:owner, :tag, :user, :permission, :created_at)
ON CONFLICT ({tenant}owner, tag, grantee) DO UPDATE SET permission = excluded.permission;

-- name: unshare_memory
DELETE FROM share WHERE memory = :key AND grantee = :user;

-- name: unshare_tag
DELETE FROM tag_share WHERE owner = :owner AND tag = :tag AND grantee = :user;

-- name: tagged
SELECT m.key FROM memory AS m JOIN memory_tag AS t ON t.memory = m.key WHERE m.owner = :owner AND t.tag = :tag;

-- name: of_memories
SELECT m.owner, m.id, s.grantee, s.permission, s.created_at FROM share AS s JOIN memory AS m ON m.key = s.memory
WHERE :viewer::text IS NULL OR m.owner = :viewer OR s.grantee IN (:viewer, '*') ORDER BY s.created_at, m.id, s.grantee;

-- name: of_tags
SELECT owner, tag, grantee, permission, created_at FROM tag_share
WHERE :viewer::text IS NULL OR owner = :viewer OR grantee IN (:viewer, '*') ORDER BY created_at, owner, tag, grantee;

-- name: shown_to
SELECT s.memory FROM share AS s WHERE s.grantee = :user
UNION SELECT t.memory FROM tag_share AS s JOIN memory_tag AS t ON t.tag = s.tag
JOIN memory AS m ON m.key = t.memory AND m.owner = s.owner WHERE s.grantee = :user;

-- name: revoke_all
DELETE FROM share WHERE grantee = :user;

-- name: revoke_all_tags
DELETE FROM tag_share WHERE grantee = :user;
