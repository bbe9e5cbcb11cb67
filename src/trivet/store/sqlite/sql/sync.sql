-- name: forget_parked
DELETE FROM parked WHERE id = :id;

-- name: parked_words
SELECT op, body FROM parked WHERE id = :id ORDER BY op;

-- name: carried_words
SELECT bundle FROM carried WHERE memory = :key;

-- name: rewrite_parked
UPDATE parked SET body = :body WHERE op = :op;

-- name: rewrite_carried
UPDATE carried SET bundle = :bundle WHERE memory = :key;
