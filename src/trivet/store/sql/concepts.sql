-- The graph as users see it. {visible} is the visibility predicate of visible.sql over the memory
-- `m`.

-- name: known
-- Concepts with the number of visible memories that mention them. A word that is capitalized at the
-- start of sentences but hardly ever within one is no name. Starting from the memories reads each
-- once.
SELECT c.concept, c.name, k.held
FROM (SELECT concept, count(*) AS held
      FROM (SELECT n.concept, max(n.role) AS role FROM mention AS n
            WHERE n.memory IN (SELECT m.key FROM memory AS m WHERE {visible})
            GROUP BY n.memory, n.concept) AS seen
      GROUP BY concept HAVING count(*) FILTER (WHERE role > 0) > :sure_per_maybe * count(*) FILTER (WHERE role = 0)) AS k
JOIN concept AS c ON c.concept = k.concept
ORDER BY {order};

-- name: known_among
-- The same for some concepts, by their index; :contains and :kind filter by what is visible.
SELECT c.concept, c.name, k.held
FROM (SELECT concept, count(*) AS held, sum(holds) AS holds
      FROM (SELECT n.concept, max(n.role) AS role, sum({position}({squeezed}, :contains::text)) AS holds
            FROM mention AS n JOIN memory AS m ON m.key = n.memory
            WHERE n.concept {in_keys:concepts} AND {visible}
            GROUP BY n.concept, n.memory) AS seen
      GROUP BY concept HAVING count(*) FILTER (WHERE role > 0) > :sure_per_maybe * count(*) FILTER (WHERE role = 0)) AS k
JOIN concept AS c ON c.concept = k.concept
WHERE (:contains::text IS NULL OR {position}(c.name, :contains) > 0 OR k.holds > 0)
  AND (:kind::text IS NULL OR :kind = (SELECT n.kind FROM mention AS n JOIN memory AS m ON m.key = n.memory
                                 WHERE n.concept = c.concept AND {visible}
                                 GROUP BY n.kind ORDER BY count(*) DESC, n.kind LIMIT 1))
ORDER BY {order};

-- name: candidates
-- Concepts that may match, visible or not, to narrow the search.
SELECT concept FROM concept
WHERE (:contains::text IS NULL OR {position}(name, :contains) > 0
       OR concept IN (SELECT n.concept FROM mention AS n WHERE {position}({squeezed}, :contains) > 0))
  AND (:kind::text IS NULL OR concept IN (SELECT n.concept FROM mention AS n WHERE n.kind = :kind));

-- name: squeezed
replace(replace(n.form, ' ', ''), '_', '');

-- name: writings
SELECT n.concept, n.label, n.kind, count(*) FROM mention AS n JOIN memory AS m ON m.key = n.memory
WHERE n.concept {in_keys:concepts} AND {visible}
GROUP BY n.concept, n.label, n.kind;

-- name: by_name
SELECT concept FROM concept WHERE name = :name
UNION SELECT concept FROM mention WHERE form = :form;

-- name: concepts_of
SELECT DISTINCT concept FROM mention WHERE memory {in_keys:memories};

-- name: memories_of
-- Concepts come rarest first; of one concept's memories, those about it come first, then the
-- newest.
SELECT m.key FROM {each_key:concepts}
JOIN mention AS n ON n.concept = wanted.value JOIN memory AS m ON m.key = n.memory
WHERE m.key {not_in_keys:seen} AND {visible}
GROUP BY m.key, m.created_at, m.id ORDER BY min(wanted.key), max(n.role) DESC, m.created_at DESC, m.id LIMIT :limit;

-- name: linked
SELECT m.key FROM memory AS m
WHERE m.key IN (SELECT target FROM link WHERE source {in_keys:memories}
                UNION SELECT source FROM link WHERE target {in_keys:memories})
  AND {visible}
ORDER BY m.created_at DESC, m.id;

-- name: statements
-- A statement has its own time, so its memory must be visible but may be of any time.
SELECT s.statement, s.source, s.relation, s.target, s.weight, s.valid_from, s.recorded_at, m.id AS evidence
FROM statement AS s JOIN memory AS m ON m.key = s.memory
WHERE s.statement IN (SELECT statement FROM statement WHERE source {in_keys:concepts}
                      UNION SELECT statement FROM statement WHERE target {in_keys:concepts})
  AND s.valid_from <= :at AND {visible}
ORDER BY s.source, s.relation, s.target, m.id;

-- name: ends
-- The end of a statement counts if the caller may see it: memories of another scope contradict
-- nothing here. {statements} is a list of keys, which SQLite pushes into the view; with a subquery
-- it would read all of it.
SELECT e.statement, e.ends_at, m.id FROM statement_end AS e LEFT JOIN memory AS m ON m.key = e.ended_by
WHERE e.statement IN ({statements}) AND (e.ended_by IS NULL OR ({visible}));

-- name: mentions_between
SELECT m.id, n.concept, max(n.role) FROM mention AS n JOIN memory AS m ON m.key = n.memory
WHERE n.memory {in_keys:memories} AND n.concept {in_keys:concepts}
GROUP BY m.id, n.concept ORDER BY m.id, n.concept;

-- name: links_between
SELECT s.id, l.kind, t.id FROM link AS l JOIN memory AS s ON s.key = l.source JOIN memory AS t ON t.key = l.target
WHERE l.source {in_keys:memories} AND l.target {in_keys:memories}
ORDER BY s.id, l.kind, t.id;
