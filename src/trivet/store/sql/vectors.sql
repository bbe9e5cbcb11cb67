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

-- name: is_unused
-- Whether a model has neither vectors nor waiting memories.
SELECT NOT EXISTS (SELECT 1 FROM passage WHERE model = :model) AND NOT EXISTS (SELECT 1 FROM job WHERE model = :model);

-- name: vectors_of
-- Every store writes its own.

-- name: spans
-- The passages of some memories, by id. Every store writes its own.

-- name: described
-- The same with their terms. Every store writes its own.

-- name: spans_at
-- One passage of each memory, by id and ordinal. Every store writes its own.

-- name: count_passages
SELECT count(*) FROM passage WHERE model = :model;

-- name: passages_of
SELECT model, ordinal, start, stop FROM passage WHERE memory = :memory ORDER BY model, ordinal;

-- name: set_terms
UPDATE passage SET terms = :terms WHERE memory = :memory AND model = :model AND ordinal = :ordinal;

-- name: insert_passage
INSERT INTO passage (memory, model, ordinal, start, stop, vector, terms)
VALUES (:memory, :model, :ordinal, :start, :stop, :vector::text::halfvec, :terms);

-- name: delete_passages
DELETE FROM passage WHERE memory = :memory;

-- name: delete_passages_of_model
DELETE FROM passage WHERE memory {in_keys:keys} AND model = :model;

-- name: orphans
SELECT count(*) FROM passage AS p JOIN memory AS m ON m.key = p.memory WHERE m.state = 'deleted' OR m.sensitive;

-- name: unaccounted
SELECT count(*) FROM memory AS m, embedding_model AS e
WHERE m.state != 'deleted' AND NOT m.sensitive
  AND NOT EXISTS (SELECT 1 FROM passage AS p WHERE p.memory = m.key AND p.model = e.model)
  AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.memory = m.key AND j.model = e.model);
