-- name: insert_change
INSERT INTO change (memory) VALUES (:key);

-- name: trim_changes
DELETE FROM change WHERE sequence <= (SELECT max(sequence) FROM change) - :keep;

-- name: last_change
SELECT seq FROM sqlite_sequence WHERE name = 'change';
