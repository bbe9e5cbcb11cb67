-- name: names_with
-- Names mentioned in the newest memories with this term.
SELECT DISTINCT n.label, c.name
FROM (SELECT memory FROM posting WHERE term = :term ORDER BY memory DESC LIMIT :memories) AS holder
JOIN mention AS n ON n.memory = holder.memory JOIN concept AS c ON c.concept = n.concept;
