-- name: models
SELECT model, identity, spec, dimension, serving FROM embedding_model ORDER BY model;

-- name: insert_model
INSERT INTO embedding_model (identity, spec, dimension, serving) VALUES (:identity, :spec, :dimension, :serving)
RETURNING model;

-- name: serve_model
UPDATE embedding_model SET serving = (model = :model);

-- name: update_spec
UPDATE embedding_model SET spec = :spec WHERE model = :model;

-- name: delete_model
DELETE FROM embedding_model WHERE model = :model;

-- name: all_vectors
SELECT memory, ordinal, vector FROM passage WHERE model = :model;

-- name: vectors_of
SELECT memory, ordinal, vector FROM passage
WHERE model = :model AND memory IN (SELECT value FROM json_each(:keys));

-- name: spans
-- CROSS JOIN fixes the order: from the few ids to their rows, not through all passages of the model.
SELECT m.id, p.ordinal, p.start, p.stop
FROM json_each(:ids) AS wanted
CROSS JOIN memory AS m ON m.id = wanted.value
CROSS JOIN passage AS p ON p.memory = m.key AND p.model = :model
ORDER BY p.ordinal;

-- name: insert_passage
INSERT INTO passage (memory, model, ordinal, start, stop, vector)
VALUES (:memory, :model, :ordinal, :start, :stop, :vector);

-- name: delete_passages
DELETE FROM passage WHERE memory = :memory;

-- name: delete_passages_of_model
DELETE FROM passage WHERE memory IN (SELECT value FROM json_each(:keys)) AND model = :model;

-- name: orphans
SELECT count(*) FROM passage AS p JOIN memory AS m ON m.key = p.memory WHERE m.state = 'deleted' OR m.sensitive;

-- name: unaccounted
SELECT count(*) FROM memory AS m, embedding_model AS e
WHERE m.state != 'deleted' AND NOT m.sensitive
  AND NOT EXISTS (SELECT 1 FROM passage AS p WHERE p.memory = m.key AND p.model = e.model)
  AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.memory = m.key AND j.model = e.model);
