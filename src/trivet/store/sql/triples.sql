-- name: means
-- The concept that a language model's readings assign to a form, most often, then by name.
SELECT wanted.value, (SELECT c.name FROM mention AS m JOIN concept AS c ON c.concept = m.concept
                      WHERE m.form = wanted.value AND m.reader = 'triples'
                      GROUP BY c.concept, c.name ORDER BY count(*) DESC, c.name LIMIT 1)
FROM {each_text:forms};

-- name: read_names
SELECT c.name FROM concept AS c WHERE c.name {in_texts:names}
  AND EXISTS (SELECT 1 FROM mention AS m WHERE m.concept = c.concept AND m.reader = 'triples');

-- name: names_with
-- Names mentioned in the newest memories with this term. Every store writes its own.

-- name: unread
SELECT EXISTS (
    SELECT 1 FROM memory AS m
    WHERE m.state != 'deleted' AND NOT m.sensitive
      AND NOT EXISTS (SELECT 1 FROM reading AS r WHERE r.memory = m.key AND r.reader = 'triples')
      AND NOT EXISTS (SELECT 1 FROM was_read AS r
                      WHERE r.memory = m.key AND r.reader = 'triples' AND r.revision = m.revision));

-- name: retry_now
-- Includes what a killed process had leased, but not what a language model may be reading now,
-- which would be paid for twice.
UPDATE reading SET not_before = 0 WHERE reader = :reader AND (reader = 'rules' OR attempts > 0);

-- name: unowned
-- Concepts mentioned by memories, but by none under the concept's own name; `held` is the most
-- common other name. Mentions by the rules always count as the own name, even if they took a plural
-- as its singular.
SELECT c.concept, (SELECT replace(replace(m.form, ' ', ''), '_', '') FROM mention AS m WHERE m.concept = c.concept
                   GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1) AS held
FROM concept AS c WHERE c.concept {in_keys:concepts}
  AND NOT EXISTS (SELECT 1 FROM mention AS m
                  WHERE m.concept = c.concept
                    AND (m.reader = 'rules' OR replace(replace(m.form, ' ', ''), '_', '') = c.name));

-- name: concept_of_name
SELECT concept FROM concept WHERE name = :name AND concept != :concept;

-- name: rename
UPDATE concept SET name = :name WHERE concept = :concept;

-- name: memories_of_concept
SELECT DISTINCT memory FROM mention WHERE concept = :concept;

-- name: clear_mentions
DELETE FROM mention WHERE concept = :other AND EXISTS (
    SELECT 1 FROM mention AS o WHERE o.concept = :concept AND o.memory = mention.memory AND o.reader = mention.reader);

-- name: move_mentions
UPDATE mention SET concept = :other WHERE concept = :concept;

-- name: clear_sources
DELETE FROM statement WHERE source = :other AND EXISTS (
    SELECT 1 FROM statement AS o WHERE o.source = :concept AND o.relation = statement.relation
      AND o.target = statement.target AND o.memory = statement.memory AND o.valid_from = statement.valid_from);

-- name: move_sources
UPDATE statement SET source = :other WHERE source = :concept;

-- name: clear_targets
DELETE FROM statement WHERE target = :other AND EXISTS (
    SELECT 1 FROM statement AS o WHERE o.target = :concept AND o.relation = statement.relation
      AND o.source = statement.source AND o.memory = statement.memory AND o.valid_from = statement.valid_from);

-- name: move_targets
UPDATE statement SET target = :other WHERE target = :concept;

-- name: delete_circles
DELETE FROM statement WHERE source = :other AND target = :other;

-- name: delete_concept
DELETE FROM concept WHERE concept = :concept;
