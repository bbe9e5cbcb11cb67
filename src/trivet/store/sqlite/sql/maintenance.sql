-- name: last_numbers
-- The numbers of the last memory and the last change.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory'), 0) AS memories,
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0) AS changes;
