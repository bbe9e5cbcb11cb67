-- name: insert_change
INSERT INTO change (memory) VALUES (:key);

-- name: trim_changes
DELETE FROM change WHERE sequence <= (SELECT max(sequence) FROM change) - :keep;

-- name: last_change
SELECT seq FROM sqlite_sequence WHERE name = 'change';

-- name: all_ids
-- From the index over ids. A damaged or foreign file may hold others than UUIDs, which are looked
-- up one by one.
SELECT key, id FROM memory WHERE length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*';

-- name: terms_of_ids
-- From the table behind the index, where FTS5 keeps its first two columns: a plain lookup.
SELECT m.id, l.c0, l.c1 FROM memory AS m JOIN lexical_content AS l ON l.id = m.key
WHERE m.id {in_texts:ids} AND {readable};
