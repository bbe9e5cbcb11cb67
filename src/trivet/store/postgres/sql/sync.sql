-- name: forget_parked
-- A laptop's store is a file: here nothing is parked.
SELECT :id::text;
