-- name: all_vectors
SELECT memory, ordinal, vector FROM passage WHERE model = :model ORDER BY memory, ordinal;

-- name: vectors_of
SELECT memory, ordinal, vector FROM passage
WHERE model = :model AND memory IN (SELECT value FROM json_each(:keys));

-- name: spans
-- CROSS JOIN fixes the order: from the few ids to their rows, not through all passages of the
-- model.
SELECT m.id, p.ordinal, p.start, p.stop
FROM json_each(:ids) AS wanted
CROSS JOIN memory AS m ON m.id = wanted.value
CROSS JOIN passage AS p ON p.memory = m.key AND p.model = :model
ORDER BY p.ordinal;

-- name: described
SELECT m.id, p.ordinal, p.start, p.stop, p.terms
FROM json_each(:ids) AS wanted
CROSS JOIN memory AS m ON m.id = wanted.value
CROSS JOIN passage AS p ON p.memory = m.key AND p.model = :model
ORDER BY p.ordinal;

-- name: spans_at
SELECT m.id, p.ordinal, p.start, p.stop
FROM json_each(:ids) AS wanted
CROSS JOIN memory AS m ON m.id = wanted.value
CROSS JOIN passage AS p ON p.memory = m.key AND p.model = :model
    AND p.ordinal = json_extract(:ordinals, '$[' || wanted.key || ']');
