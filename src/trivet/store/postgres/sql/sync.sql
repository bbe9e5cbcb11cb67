-- name: forget_parked
-- A laptop's store is a file, so nothing is parked here.
SELECT :id::text;

-- name: parked_words
SELECT '' AS op, '' AS body WHERE :id::text IS NULL;

-- name: carried_words
SELECT '' AS bundle WHERE :key::bigint IS NULL;

-- name: rewrite_parked
SELECT :op::text, :body::text;

-- name: rewrite_carried
SELECT :key::bigint, :bundle::text;
