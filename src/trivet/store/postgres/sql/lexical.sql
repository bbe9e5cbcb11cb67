-- name: insert
WITH kept AS (
    INSERT INTO lexical (memory, content, title, keywords, tags, category)
    VALUES (:key, :content, :title, :keywords, :tags, :category)
), word (term, field) AS (
    SELECT unnest(string_to_array(:content, ' ')), 0
    UNION ALL SELECT unnest(string_to_array(:title, ' ')), 1
    UNION ALL SELECT unnest(string_to_array(:keywords, ' ')), 2
    UNION ALL SELECT unnest(string_to_array(:tags, ' ')), 3
    UNION ALL SELECT unnest(string_to_array(:category, ' ')), 4
)
INSERT INTO posting (term, memory, content, title, keywords, tags, category)
SELECT term, :key, count(*) FILTER (WHERE field = 0), count(*) FILTER (WHERE field = 1),
       count(*) FILTER (WHERE field = 2), count(*) FILTER (WHERE field = 3), count(*) FILTER (WHERE field = 4)
FROM word GROUP BY term;

-- name: insert_many
WITH document AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:rows)
        AS r (key bigint, content text, title text, keywords text, tags text, category text)
), kept AS (
    INSERT INTO lexical (memory, content, title, keywords, tags, category)
    SELECT key, content, title, keywords, tags, category FROM document
)
INSERT INTO posting (term, memory, content, title, keywords, tags, category)
SELECT term, key, count(*) FILTER (WHERE field = 1), count(*) FILTER (WHERE field = 2),
       count(*) FILTER (WHERE field = 3), count(*) FILTER (WHERE field = 4), count(*) FILTER (WHERE field = 5)
FROM (SELECT d.key, unnest(string_to_array(text, ' ')) AS term, field
      FROM document AS d, unnest(ARRAY[d.content, d.title, d.keywords, d.tags, d.category])
                          WITH ORDINALITY AS one (text, field)) AS word
GROUP BY term, key;

-- name: insert_fingerprint_many
INSERT INTO fingerprint (hash, memory)
SELECT unnest(as_keys(r.hashes)), r.key FROM json_to_recordset(:rows) AS r (key bigint, hashes text)
ON CONFLICT DO NOTHING;

-- name: delete
WITH gone AS (DELETE FROM posting WHERE memory = :key)
DELETE FROM lexical WHERE memory = :key;

-- name: postings
-- Two packed columns, whatever the number of rows, are the cheapest thing to carry out of the database.
SELECT string_agg(int8send(memory), ''::bytea ORDER BY memory),
       string_agg(float8send(frequency), ''::bytea ORDER BY memory)
FROM (SELECT memory, :content::float8 * content + :title::float8 * title + :keywords::float8 * keywords
                     + :tags::float8 * tags + :category::float8 * category AS frequency
      FROM posting WHERE term = :term) AS held
WHERE frequency > 0;

-- name: document
SELECT content, title, keywords, tags, category FROM lexical WHERE memory = :key;

-- name: insert_fingerprint
INSERT INTO fingerprint (hash, memory) SELECT unnest(as_keys(:hashes)), :key
ON CONFLICT DO NOTHING;

-- name: delete_fingerprint
DELETE FROM fingerprint WHERE memory = :key;

-- name: similar
SELECT m.id FROM fingerprint AS f JOIN memory AS m ON m.key = f.memory
WHERE f.hash = ANY (as_keys(:hashes)) AND m.id != :id AND {readable}
GROUP BY f.memory, m.id HAVING count(*) >= :shared ORDER BY count(*) DESC, f.memory LIMIT :limit;

-- name: clear_fingerprints
DELETE FROM fingerprint;

-- name: clear
WITH gone AS (DELETE FROM posting)
DELETE FROM lexical;

-- name: missing
SELECT count(*) FROM memory AS m WHERE m.state != 'deleted' AND NOT EXISTS (SELECT 1 FROM lexical AS l WHERE l.memory = m.key);

-- name: orphans
SELECT count(*) FROM (SELECT memory FROM lexical UNION SELECT memory FROM posting UNION SELECT memory FROM fingerprint) AS l
WHERE NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.memory AND m.state != 'deleted');
