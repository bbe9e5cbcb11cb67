-- name: begin
INSERT INTO once (name, request, taken_at) VALUES (:name, :request, :taken_at) ON CONFLICT DO NOTHING;

-- name: kept
SELECT request, answer FROM once WHERE name = :name;

-- name: take_over
-- A time in the future was written under a clock that has been set back since.
UPDATE once SET taken_at = :taken_at
WHERE name = :name AND request = :request AND answer IS NULL AND (taken_at < :before OR taken_at > :after);

-- name: finish
UPDATE once SET answer = :answer WHERE name = :name;

-- name: give_up
DELETE FROM once WHERE name = :name AND answer IS NULL;

-- name: forget
DELETE FROM once WHERE taken_at < :before OR taken_at > :after;
