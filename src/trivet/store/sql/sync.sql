-- name: bury
-- A store outside sync keeps no trace of purged memories.
INSERT INTO tombstone (id, memory, owner, seq, first_rev)
SELECT :id, :key, :owner, NULL, (SELECT rev FROM revision WHERE memory = :key AND revision = 1)
WHERE EXISTS (SELECT 1 FROM meta WHERE name = 'sync')
ON CONFLICT ({tenant}id) DO NOTHING;

-- name: forget_parked
-- Every store writes its own.

-- name: parked_words
-- Every store writes its own.

-- name: carried_words
-- Every store writes its own.

-- name: rewrite_parked
-- Every store writes its own.

-- name: rewrite_carried
-- Every store writes its own.

-- name: branch_terms
SELECT terms FROM branch WHERE memory = :key AND waiting = 1 ORDER BY rev;

-- name: any_branch
SELECT EXISTS (SELECT 1 FROM branch WHERE waiting = 1);

-- name: waiting_branches
SELECT m.id, b.rev FROM branch AS b JOIN memory AS m ON m.key = b.memory
WHERE m.id {in_texts:ids} AND b.waiting = 1 ORDER BY m.id, b.changed_at, b.rev;

-- name: clashing
SELECT m.id, 0 AS revision, b.rev, b.base, b.author, b.changed_at, b.action, b.snapshot
FROM branch AS b JOIN memory AS m ON m.key = b.memory
WHERE b.waiting = 1 AND (:id = '' OR m.id = :id) AND {readable} ORDER BY m.id, b.changed_at, b.rev LIMIT :limit;

-- name: settle_branch
UPDATE branch SET waiting = :waiting WHERE memory = :key AND rev = :rev;

-- name: revisions_of
SELECT memory, revision, changed_at, action, snapshot, rev, base, author FROM revision
WHERE memory {in_keys:keys} ORDER BY memory, revision;

-- name: name_revision
UPDATE revision SET rev = :rev, base = :base, author = :author, snapshot = :snapshot WHERE memory = :key AND revision = :revision;

-- name: delete_revision
DELETE FROM revision WHERE memory = :key AND revision = :revision;

-- name: branches_of
SELECT memory, 0 AS revision, rev, base, author, changed_at, action, snapshot, waiting FROM branch
WHERE memory {in_keys:keys} ORDER BY memory, rev;

-- name: put_branch
INSERT INTO branch (memory, rev, base, author, changed_at, action, snapshot, waiting, terms)
VALUES (:key, :rev, :base, :author, :changed_at, :action, :snapshot, :waiting, :terms)
ON CONFLICT ({tenant}memory, rev) DO UPDATE
SET snapshot = excluded.snapshot, waiting = excluded.waiting, terms = excluded.terms;

-- name: rewrite_branch
UPDATE branch SET snapshot = :snapshot, terms = :terms WHERE memory = :key AND rev = :rev;

-- name: delete_branch
DELETE FROM branch WHERE memory = :key AND rev = :rev;

-- name: memories_of
SELECT {memory} FROM memory AS m WHERE m.key {in_keys:keys};

-- name: writable_of
SELECT m.key FROM memory AS m WHERE m.key {in_keys:keys}
AND (m.owner = :viewer
     OR EXISTS (SELECT 1 FROM share AS s WHERE s.memory = m.key AND s.grantee IN (:viewer, '*') AND s.permission = 'write')
     OR EXISTS (SELECT 1 FROM memory_tag AS t JOIN tag_share AS s ON s.tag = t.tag
                WHERE t.memory = m.key AND s.owner = m.owner AND s.grantee IN (:viewer, '*') AND s.permission = 'write'));

-- name: shares_of
SELECT memory, grantee, permission FROM share WHERE memory {in_keys:keys} ORDER BY memory, grantee;

-- name: readers_of
-- By a share of the memory or of one of its tags, as in the visibility predicate.
SELECT m.key, s.grantee, s.permission FROM memory AS m JOIN share AS s ON s.memory = m.key
WHERE m.key {in_keys:keys} AND NOT m.sensitive AND m.state != 'deleted'
UNION
SELECT m.key, s.grantee, s.permission FROM memory AS m JOIN memory_tag AS t ON t.memory = m.key
JOIN tag_share AS s ON s.tag = t.tag AND s.owner = m.owner
WHERE m.key {in_keys:keys} AND NOT m.sensitive AND m.state != 'deleted'
ORDER BY 1, 2, 3;

-- name: feedback_of
SELECT memory, actor, query, verdict, at FROM feedback WHERE memory {in_keys:keys} ORDER BY memory, actor, query;

-- name: links_of
SELECT l.source AS source_key, l.target AS target_key, s.id, l.kind, t.id, l.created_at FROM link AS l
JOIN memory AS s ON s.key = l.source JOIN memory AS t ON t.key = l.target
WHERE l.source {in_keys:keys} OR l.target {in_keys:keys} ORDER BY s.id, l.kind, t.id;

-- name: seen_keys
SELECT m.key FROM memory AS m WHERE m.key {in_keys:keys} AND {readable};

-- name: with_placeholders
-- A user's memories that may hold a secret's placeholder.
SELECT m.key FROM memory AS m WHERE m.key {in_keys:keys} AND m.owner = :viewer AND EXISTS (
    SELECT 1 FROM revision AS r WHERE r.memory = m.key AND (r.snapshot LIKE :secret OR r.snapshot LIKE :private)
    UNION ALL
    SELECT 1 FROM branch AS b WHERE b.memory = m.key AND (b.snapshot LIKE :secret OR b.snapshot LIKE :private));

-- name: keys
SELECT key FROM memory UNION SELECT memory FROM feed ORDER BY 1;

-- name: unfed
SELECT m.key FROM memory AS m WHERE NOT EXISTS (SELECT 1 FROM feed AS f WHERE f.memory = m.key)
ORDER BY m.key LIMIT :limit;

-- name: known
SELECT memory, id, seq, digest, readers FROM feed WHERE memory {in_keys:keys};

-- name: put_feed
INSERT INTO feed (memory, id, seq, digest, readers) VALUES (:key, :id, :seq, :digest, :readers)
ON CONFLICT ({tenant}memory) DO UPDATE
SET id = excluded.id, seq = excluded.seq, digest = excluded.digest, readers = excluded.readers;

-- name: drop_feed
DELETE FROM feed WHERE memory = :key;

-- name: healed
SELECT coalesce(max(healed), 0) FROM feed WHERE id = :id;

-- name: set_healed
UPDATE feed SET healed = :seq WHERE id = :id AND healed < :seq;

-- name: unnumbered
SELECT id, memory, owner, first_rev FROM tombstone WHERE seq IS NULL ORDER BY memory, id;

-- name: number_tombstone
UPDATE tombstone SET seq = :seq WHERE id = :id;

-- name: tombstone
SELECT id, owner FROM tombstone WHERE id = :id;

-- name: tombstone_for
-- A user learns of a purge only if they could read the memory.
SELECT t.id, t.owner, t.first_rev FROM tombstone AS t WHERE t.id = :id
AND (t.owner = :viewer OR EXISTS (
    SELECT 1 FROM revoked AS r WHERE r.grantee IN (:viewer, '*') AND r.id = :id AND r.purged IS NOT NULL));

-- name: ids_of
SELECT id FROM memory WHERE owner = :owner;

-- name: begun_with
-- The user's ids of memories that began with these revisions.
SELECT m.id FROM revision AS r JOIN memory AS m ON m.key = r.memory
WHERE r.rev {in_texts:revs} AND r.revision = 1 AND m.owner = :owner;

-- name: beside_of
-- The user's ids of memories that have these revisions as branches.
SELECT DISTINCT m.id FROM branch AS b JOIN memory AS m ON m.key = b.memory WHERE b.rev {in_texts:revs} AND m.owner = :owner;

-- name: buried
SELECT id FROM tombstone WHERE id {in_texts:ids} LIMIT 1;

-- name: put_tombstone
INSERT INTO tombstone (id, memory, owner, seq, first_rev) VALUES (:id, 0, :owner, :seq, :first_rev)
ON CONFLICT ({tenant}id) DO UPDATE SET first_rev = coalesce(tombstone.first_rev, excluded.first_rev);

-- name: purged_as
-- Those of the revisions that were the first of a user's purged memory, under any id.
SELECT first_rev FROM tombstone WHERE first_rev {in_texts:revs} AND owner = :owner;

-- name: put_revoked
INSERT INTO revoked (grantee, seq, id, purged, at) VALUES (:grantee, :seq, :id, :purged, :at) ON CONFLICT DO NOTHING;

-- name: taken_from
SELECT DISTINCT grantee FROM revoked WHERE grantee {in_texts:grantees} AND id = :id AND purged IS NULL;

-- name: put_numbering
INSERT INTO numbering (seq, mark, at) VALUES (:seq, :mark, :at);

-- name: mark
SELECT mark FROM numbering WHERE seq = :seq;

-- name: last_numbering
SELECT seq, mark FROM numbering ORDER BY seq DESC LIMIT 1;

-- name: changed
SELECT f.seq, f.memory, m.id, m.scope FROM feed AS f JOIN memory AS m ON m.key = f.memory
WHERE f.seq > :seq AND {readable} ORDER BY f.seq LIMIT :limit;

-- name: numbered_since
SELECT f.seq, m.owner, f.readers FROM feed AS f JOIN memory AS m ON m.key = f.memory
WHERE f.seq > :seq ORDER BY f.seq LIMIT :limit;

-- name: revoked_since
SELECT grantee, max(seq) AS seq FROM revoked WHERE seq > :seq GROUP BY grantee;

-- name: revoked
SELECT r.seq, r.id, r.purged, t.first_rev FROM revoked AS r LEFT JOIN tombstone AS t ON t.id = r.id
WHERE r.grantee IN (:viewer, '*') AND r.seq > :seq ORDER BY r.seq LIMIT :limit;

-- name: applied
SELECT result, id, reason FROM applied WHERE op = :op;

-- name: put_applied
INSERT INTO applied (op, result, id, reason, at) VALUES (:op, :result, :id, :reason, :at) ON CONFLICT DO NOTHING;

-- name: trim_applied
DELETE FROM applied WHERE at < :before;

-- name: trim_revoked
DELETE FROM revoked WHERE at < :before AND purged IS NULL;

-- name: last_forgotten
SELECT max(seq) FROM revoked WHERE at < :before AND purged IS NULL;

-- name: tag_shares
SELECT tag, grantee, permission FROM tag_share WHERE owner = :owner ORDER BY tag, grantee;

-- name: heads_of
SELECT m.key, m.id, r.rev FROM memory AS m JOIN revision AS r ON r.memory = m.key AND r.revision = m.revision
WHERE m.id {in_texts:ids} AND NOT m.sensitive AND {readable};

-- name: heads
SELECT m.id, r.rev, m.scope FROM memory AS m JOIN revision AS r ON r.memory = m.key AND r.revision = m.revision
WHERE NOT m.sensitive AND {readable} ORDER BY m.id;
