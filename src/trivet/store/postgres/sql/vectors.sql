-- name: passages
SELECT count(*) FROM passage WHERE model = :model;

-- name: held
-- The number of a memory's passages.
(SELECT count(*) FROM passage AS every
 WHERE every.tenant = best.tenant AND every.model = best.model AND every.memory = best.memory)

-- name: nearest_exact
-- The best passages, with the number of passages of their memory. {within} is the tenant and the
-- model, as literals (see below).
SELECT best.id, best.ordinal, best.score, {held}
FROM (SELECT m.id, p.tenant, p.model, p.memory, p.ordinal, -(p.vector::vector <#> :query::vector) AS score
      FROM passage AS p JOIN memory AS m ON m.key = p.memory
      WHERE {within} AND {visible}
      ORDER BY p.vector::vector <#> :query::vector LIMIT :limit) AS best;

-- name: nearest_among
-- The same for visible memories that are few enough to be listed.
SELECT best.id, best.ordinal, best.score, {held}
FROM (SELECT m.id, p.tenant, p.model, p.memory, p.ordinal, -(p.vector::vector <#> :query::vector) AS score
      FROM passage AS p JOIN memory AS m ON m.key = p.memory
      WHERE {within} AND p.memory = ANY (as_keys(:keys))
      ORDER BY p.vector::vector <#> :query::vector LIMIT :limit) AS best;

-- name: nearest_indexed
-- The same by the index over half-precision vectors, with exact scores. PostgreSQL recognizes the
-- partial index only if tenant and model are literals.
SELECT best.id, best.ordinal, -(best.vector::vector <#> :query::vector) AS score, {held}
FROM (SELECT m.id, p.tenant, p.model, p.memory, p.ordinal, p.vector
      FROM passage AS p JOIN memory AS m ON m.key = p.memory
      WHERE {within} AND {visible}
      ORDER BY (p.vector::halfvec({dimension})) <#> :query::halfvec({dimension}) LIMIT :limit) AS best;

-- name: last_embedded
SELECT max(memory) FROM passage;

-- name: vectors_between
-- Packed like posting lists, without the four bytes of each vector that hold its dimension.
SELECT string_agg(int8send(memory), ''::bytea ORDER BY memory, ordinal),
       string_agg(int8send(ordinal), ''::bytea ORDER BY memory, ordinal),
       string_agg(substr(halfvec_send(vector), 5), ''::bytea ORDER BY memory, ordinal)
FROM passage WHERE model = :model AND memory > :after AND memory <= :up_to;

-- name: vectors_of
SELECT string_agg(int8send(memory), ''::bytea ORDER BY memory, ordinal),
       string_agg(int8send(ordinal), ''::bytea ORDER BY memory, ordinal),
       string_agg(substr(halfvec_send(vector), 5), ''::bytea ORDER BY memory, ordinal)
FROM passage WHERE model = :model AND memory = ANY (as_keys(:keys));

-- name: spans
SELECT m.id, p.ordinal, p.start, p.stop
FROM unnest(as_texts(:ids)) AS wanted (value)
JOIN memory AS m ON m.id = wanted.value
JOIN passage AS p ON p.memory = m.key AND p.model = :model
ORDER BY p.ordinal;

-- name: described
SELECT m.id, p.ordinal, p.start, p.stop, p.terms
FROM unnest(as_texts(:ids)) AS wanted (value)
JOIN memory AS m ON m.id = wanted.value
JOIN passage AS p ON p.memory = m.key AND p.model = :model
ORDER BY p.ordinal;

-- name: spans_at
SELECT m.id, p.ordinal, p.start, p.stop
FROM unnest(as_texts(:ids), as_keys(:ordinals)) AS wanted (id, ordinal)
JOIN memory AS m ON m.id = wanted.id
JOIN passage AS p ON p.memory = m.key AND p.model = :model AND p.ordinal = wanted.ordinal;

-- name: insert_passage
INSERT INTO passage (memory, model, ordinal, start, stop, vector, terms)
SELECT memory, model, ordinal, start, stop, vector, terms FROM json_populate_recordset(NULL::passage, :rows);
