-- name: names_with
-- Names mentioned in the newest memories with this term.
SELECT DISTINCT n.label, c.name
FROM (SELECT rowid AS memory FROM lexical WHERE lexical MATCH '"' || replace(:term, '"', '""') || '"' ORDER BY rowid DESC LIMIT :memories) AS holder
JOIN mention AS n ON n.memory = holder.memory JOIN concept AS c ON c.concept = n.concept;
