-- A language model's tokens per day, counted in `meta` under a name that ends in the day.

-- name: spend
INSERT INTO meta (name, value) VALUES (:name, CAST(:tokens::bigint AS text))
ON CONFLICT ({tenant}name) DO UPDATE SET value = CAST(CAST(meta.value AS bigint) + :tokens::bigint AS text)
WHERE CAST(meta.value AS bigint) + :tokens::bigint <= :most::bigint;

-- name: spent
SELECT CAST(value AS bigint) FROM meta WHERE name = :name;

-- name: forget_earlier_days
DELETE FROM meta WHERE name LIKE :earlier AND name != :name;
