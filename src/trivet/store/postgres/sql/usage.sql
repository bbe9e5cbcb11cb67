-- name: times_of_each
SELECT * FROM unnest(as_texts(:ids), as_keys(:times)) AS one (id, times)
