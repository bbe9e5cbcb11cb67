-- name: last_numbers
-- The numbers of the last memory and the last change.
SELECT last_key AS memories, last_change AS changes FROM tenant;

-- name: index_names
SELECT value FROM meta WHERE name {in_texts:names};

-- name: drop_index_names
DELETE FROM meta WHERE name {in_texts:names};

-- name: keep_index_names
-- Keep the latest: machines that are gone leave theirs behind.
DELETE FROM meta WHERE name IN (
    SELECT name FROM meta WHERE starts_with(name, 'index ')
    ORDER BY split_part(value, ' ', 3)::bigint DESC OFFSET :most
);

-- name: disown_indexes
DELETE FROM meta WHERE starts_with(name, 'index ');
