-- name: forget_parked
DELETE FROM parked WHERE id = :id;
