-- name: last_numbers
-- Of the last memory that was stored and of the last change.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory'), 0) AS memories,
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0) AS changes;
