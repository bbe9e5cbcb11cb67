-- The laptop's side of sync. A laptop's store is always a file.

-- name: by_id
SELECT id, memory, epoch, seq, head, revision, access, digest FROM replica WHERE id = :id;

-- name: heard_of
SELECT wanted.value FROM json_each(:ids) AS wanted
WHERE EXISTS (SELECT 1 FROM memory WHERE id = wanted.value) OR EXISTS (SELECT 1 FROM replica WHERE id = wanted.value)
   OR EXISTS (SELECT 1 FROM tombstone WHERE id = wanted.value) OR EXISTS (SELECT 1 FROM outbox WHERE id = wanted.value);

-- name: by_keys
SELECT id, memory, epoch, seq, head, revision, access, digest FROM replica WHERE memory {in_keys:keys};

-- name: all
SELECT id, memory, epoch, seq, head, revision, access, digest FROM replica ORDER BY memory;

-- name: put
INSERT INTO replica (id, memory, epoch, seq, head, revision, access, digest)
VALUES (:id, :memory, :epoch, :seq, :head, :revision, :access, :digest)
ON CONFLICT (id) DO UPDATE SET memory = excluded.memory, epoch = excluded.epoch, seq = excluded.seq,
    head = excluded.head, revision = excluded.revision, access = excluded.access, digest = excluded.digest;

-- name: set_place
UPDATE replica SET epoch = :epoch, seq = :seq WHERE id = :id;

-- name: doubt_all
-- Makes the next version of a memory from the server news.
UPDATE replica SET epoch = '';

-- name: set_digest
UPDATE replica SET digest = :digest WHERE id = :id;

-- name: delete
DELETE FROM replica WHERE id = :id;

-- name: other_epoch
SELECT id, access FROM replica WHERE epoch NOT IN (:epoch, :outside) ORDER BY memory;

-- name: absent
SELECT r.id FROM replica AS r WHERE NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.key = r.memory);

-- name: links
SELECT source, kind, target FROM replica_link WHERE source = :id OR target = :id;

-- name: all_links
SELECT source, kind, target FROM replica_link ORDER BY source, kind, target;

-- name: put_link
INSERT INTO replica_link (source, kind, target) VALUES (:source, :kind, :target) ON CONFLICT DO NOTHING;

-- name: delete_link
DELETE FROM replica_link WHERE source = :source AND kind = :kind AND target = :target;

-- name: delete_links
DELETE FROM replica_link WHERE source = :id OR target = :id;

-- name: shares
SELECT tag, grantee, permission FROM replica_share WHERE id = :id AND permission != 'ended' ORDER BY tag, grantee;

-- name: ended_shares
-- Shares that the owner ended, to repeat to a restored server.
SELECT tag, grantee FROM replica_share WHERE id = :id AND permission = 'ended' ORDER BY tag, grantee;

-- name: unsaid
-- Feedback that the server does not know, except on memories that stay local.
SELECT f.memory, m.id, f.query, f.verdict, f.at FROM feedback AS f JOIN memory AS m ON m.key = f.memory
WHERE f.memory {in_keys:keys} AND f.actor = 'local' AND f.verdict IS NOT f.told AND (NOT m.sensitive OR :sensitive)
ORDER BY f.memory, f.query;

-- name: judged
SELECT DISTINCT memory FROM feedback WHERE actor = 'local';

-- name: put_told
-- Keeps feedback given here since and not sent yet.
INSERT INTO feedback (memory, actor, query, verdict, at, told) VALUES (:memory, 'local', :query, :verdict, :at, :verdict)
ON CONFLICT (memory, actor, query) DO UPDATE
SET verdict = CASE WHEN verdict IS told THEN excluded.verdict ELSE verdict END, told = excluded.told;

-- name: unsay
-- Restores the server's version of feedback that it refused and that is parked.
UPDATE feedback SET verdict = told WHERE memory = :key AND actor = 'local' AND told IS NOT NULL;

-- name: unsay_new
DELETE FROM feedback WHERE memory = :key AND actor = 'local' AND told IS NULL;

-- name: untold
UPDATE feedback SET told = NULL;

-- name: put_share
INSERT INTO replica_share (id, tag, grantee, permission) VALUES (:id, :tag, :grantee, :permission)
ON CONFLICT (id, tag, grantee) DO UPDATE SET permission = excluded.permission;

-- name: delete_share
DELETE FROM replica_share WHERE id = :id AND tag = :tag AND grantee = :grantee;

-- name: delete_shares
DELETE FROM replica_share WHERE id = :id;

-- name: outbox
SELECT place, op, kind, id, memory, rev, base, detail, at FROM outbox ORDER BY place LIMIT :limit;

-- name: pending
SELECT place, op, kind, id, memory, rev, base, detail, at FROM outbox WHERE id = :id ORDER BY place;

-- name: pending_of_keys
SELECT place, op, kind, id, memory, rev, base, detail, at FROM outbox WHERE memory {in_keys:keys} ORDER BY place;

-- name: enqueue
INSERT INTO outbox (op, kind, id, memory, rev, base, detail, at)
VALUES (:op, :kind, :id, :memory, :rev, :base, :detail, :at);

-- name: enqueue_first
INSERT INTO outbox (place, op, kind, id, memory, rev, base, detail, at)
VALUES ((SELECT coalesce(min(place), 1) - 1 FROM outbox), :op, :kind, :id, :memory, :rev, :base, :detail, :at);

-- name: dequeue
DELETE FROM outbox WHERE op = :op;

-- name: by_op
SELECT place, op, kind, id, memory, rev, base, detail, at FROM outbox WHERE op = :op;

-- name: clear_outbox
DELETE FROM outbox WHERE id = :id AND kind != 'purge';

-- name: move_outbox
UPDATE outbox SET id = :new, memory = :key WHERE id = :old;

-- name: rename_queued_sources
UPDATE outbox SET detail = json_set(detail, '$.link.source', :new) WHERE json_extract(detail, '$.link.source') = :old;

-- name: rename_queued_targets
UPDATE outbox SET detail = json_set(detail, '$.link.target', :new) WHERE json_extract(detail, '$.link.target') = :old;

-- name: move_feedback
-- Unsent feedback on a memory under its old name.
UPDATE OR REPLACE feedback SET memory = :key, told = NULL
WHERE memory = :old_key AND actor = 'local' AND verdict IS NOT told;

-- name: outbox_size
SELECT count(*), min(at) FROM outbox;

-- name: park
INSERT INTO parked (op, kind, id, rev, body, reason, at) VALUES (:op, :kind, :id, :rev, :body, :reason, :at)
ON CONFLICT DO NOTHING;

-- name: parked
SELECT op, kind, id, rev, body, reason, at FROM parked ORDER BY at, op;

-- name: parked_of
SELECT op, kind, id, rev, body, reason, at FROM parked WHERE id = :id;

-- name: unpark
DELETE FROM parked WHERE op = :op;

-- name: put_carried
INSERT INTO carried (memory, bundle) VALUES (:key, :bundle)
ON CONFLICT (memory) DO UPDATE SET bundle = excluded.bundle;

-- name: carried
SELECT bundle FROM carried WHERE memory = :key;

-- name: all_carried
SELECT memory, bundle FROM carried ORDER BY memory;

-- name: drop_carried
DELETE FROM carried WHERE memory = :key;

-- name: tombstones
SELECT id, memory, owner, seq, first_rev FROM tombstone ORDER BY id;

-- name: number_tombstone
UPDATE tombstone SET seq = 0, owner = :owner WHERE id = :id;

-- name: forget_purges
-- A laptop that leaves keeps purges unknown to the server, so as not to bring the memory back if it
-- joins again.
DELETE FROM tombstone WHERE id NOT IN (SELECT id FROM outbox WHERE kind = 'purge');

-- name: forget_waiting
-- Except removals: without them the server would bring back the share or the link after joining
-- again.
DELETE FROM outbox WHERE kind NOT IN ('unshare', 'unshare_tag', 'unlink');

-- name: purge_again
UPDATE tombstone SET seq = NULL;

-- name: unbury
DELETE FROM tombstone WHERE id = :id;

-- name: unbury_others
DELETE FROM tombstone WHERE owner != :me;

-- name: own_tag_shares
SELECT tag, grantee, permission FROM tag_share WHERE owner = 'local';

-- name: put_tag_share
INSERT INTO tag_share (owner, tag, grantee, permission, created_at) VALUES ('local', :tag, :grantee, :permission, :at)
ON CONFLICT (owner, tag, grantee) DO UPDATE SET permission = excluded.permission;

-- name: delete_tag_share
DELETE FROM tag_share WHERE owner = 'local' AND tag = :tag AND grantee = :grantee;

-- name: hide_others
DELETE FROM share WHERE grantee = 'local';

-- name: note_away
UPDATE meta SET value = json_set(value, '$.away', :away, '$.looked', json(:looked)) WHERE name = :name;

-- name: note_hidden
UPDATE meta SET value = json_set(value, '$.hidden', json('true')) WHERE name = :name;

-- name: show_others
INSERT INTO share (memory, grantee, permission, created_at)
SELECT memory, 'local', access, :at FROM replica WHERE access != 'own' AND memory IN (SELECT key FROM memory)
ON CONFLICT DO NOTHING;

-- name: others
SELECT memory FROM replica WHERE access != 'own';

-- name: without_beginning
-- Own memories that the server never sent here, although it accepted their first text.
SELECT id, key AS memory FROM memory WHERE owner = 'local' AND id NOT IN (SELECT id FROM replica)
  AND id NOT IN (SELECT id FROM outbox WHERE kind = 'create') ORDER BY id;

-- name: sensitive
-- A restored server may not know that they are sensitive.
SELECT key FROM memory WHERE sensitive AND (owner = 'local' OR key IN (SELECT memory FROM replica)) ORDER BY key;

-- name: once_sensitive
-- Memories that are sensitive, or were in some revision.
SELECT key FROM memory WHERE sensitive UNION
SELECT memory FROM revision WHERE json_extract(snapshot, '$.sensitive') ORDER BY 1;

-- name: withdraw
-- What can be merged again. A settled conflict stays settled.
DELETE FROM outbox WHERE memory = :key AND kind NOT IN ('resolve', 'heal');

-- name: heals
SELECT place, op, kind, id, memory, rev, base, detail, at FROM outbox WHERE kind = 'heal' ORDER BY place;

-- name: parts_of
SELECT vault, id, path, place, content, said, about FROM vault_part WHERE id = :id;

-- name: stays_local
SELECT count(*) FROM memory AS m
WHERE m.sensitive AND NOT EXISTS (SELECT 1 FROM replica AS r WHERE r.memory = m.key);

-- name: conflicts
SELECT count(*) FROM branch WHERE waiting = 1;

-- name: rename
UPDATE memory SET id = :new WHERE id = :old;

-- name: rename_revisions
UPDATE revision SET snapshot = json_set(snapshot, '$.id', :new) WHERE memory = :key;

-- name: rename_branches
UPDATE branch SET snapshot = json_set(snapshot, '$.id', :new) WHERE memory = :key;

-- name: rename_links_from
UPDATE replica_link SET source = :new WHERE source = :old;

-- name: rename_links_to
UPDATE replica_link SET target = :new WHERE target = :old;

-- name: rename_parts
UPDATE OR IGNORE vault_part SET id = :new WHERE id = :old;

-- name: rename_part_sources
UPDATE OR REPLACE vault_link SET source = :new WHERE source = :old;

-- name: rename_part_targets
UPDATE OR REPLACE vault_link SET target = :new WHERE target = :old;

-- name: rename_proposals
UPDATE proposal SET memory = CASE memory WHEN :old THEN :new ELSE memory END,
    stored = CASE stored WHEN :old THEN :new ELSE stored END WHERE memory = :old OR stored = :old;

-- name: rename_replica
UPDATE replica SET id = :new WHERE id = :old;

-- name: rename_shares
UPDATE replica_share SET id = :new WHERE id = :old;

-- name: rename_parked
UPDATE parked SET id = :new WHERE id = :old;

-- name: ids
-- Memories that no server ever got: sending a memory names its first revision.
SELECT m.id FROM memory AS m JOIN revision AS r ON r.memory = m.key AND r.revision = 1 WHERE r.rev IS NULL ORDER BY m.key;

-- name: unsynced
-- Memories with a revision unknown to sync: an older Trivet wrote it.
SELECT m.key FROM memory AS m LEFT JOIN replica AS r ON r.memory = m.key WHERE r.memory IS NULL OR r.revision != m.revision;

-- name: leave
DELETE FROM replica;

-- name: heads
-- Memories that the server sends, without those kept here although outside the laptop's scopes.
SELECT m.id, r.head, m.scope FROM replica AS r JOIN memory AS m ON m.key = r.memory
WHERE NOT m.sensitive AND r.epoch NOT LIKE 'outside %' ORDER BY m.id;

-- name: without_vectors
-- Memories that wait to be embedded and still are as the server last sent them.
SELECT j.memory, r.id, r.head, m.revision, m.title, m.content FROM job AS j
JOIN replica AS r ON r.memory = j.memory JOIN memory AS m ON m.key = j.memory
WHERE j.model = :model AND j.memory > :after AND m.revision = r.revision AND j.revision = m.revision
ORDER BY j.memory LIMIT :limit;

-- name: unsent_branches
SELECT rev FROM branch WHERE memory = :key AND waiting = 2;

-- name: beside_there
UPDATE branch SET waiting = 1 WHERE memory = :key AND rev = :rev AND waiting = 2;

-- name: standing
SELECT json_extract(value, '$.url') AS server, json_extract(value, '$.user') AS user,
       json_extract(value, '$.contact') AS contact, json_extract(value, '$.hidden') AS hidden,
       (SELECT count(*) FROM outbox) AS waiting, (SELECT min(at) FROM outbox) AS oldest,
       (SELECT count(*) FROM parked) AS refused, (SELECT count(*) FROM branch WHERE waiting = 1) AS conflicts
FROM meta WHERE name = 'sync';

-- name: beside
-- Clashing edits that are unresolved or were not sent yet.
SELECT memory, rev FROM branch WHERE waiting != 0 ORDER BY memory, rev;
