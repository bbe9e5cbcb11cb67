-- name: insert
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

-- name: insert_fingerprint
INSERT INTO fingerprint (hash, memory)
SELECT unnest(as_keys(r.hashes)), r.key FROM json_to_recordset(:rows) AS r (key bigint, hashes text)
ON CONFLICT DO NOTHING;

-- name: delete
WITH gone AS (DELETE FROM posting WHERE memory = :key)
DELETE FROM lexical WHERE memory = :key;

-- name: postings
-- Two packed columns are the cheapest result to read from the database.
SELECT term, string_agg(int8send(memory), ''::bytea ORDER BY memory),
       string_agg(float8send(frequency), ''::bytea ORDER BY memory)
FROM (SELECT term, memory, :content::float8 * content + :title::float8 * title + :keywords::float8 * keywords
                     + :tags::float8 * tags + :category::float8 * category AS frequency
      FROM posting WHERE term = ANY (as_texts(:terms))) AS held
WHERE frequency > 0 GROUP BY term;

-- name: terms_from
WITH RECURSIVE held (term) AS (
    (SELECT term FROM posting WHERE term >= :low AND term < :high ORDER BY term LIMIT 1)
    UNION ALL
    SELECT (SELECT term FROM posting WHERE term > held.term AND term < :high ORDER BY term LIMIT 1)
    FROM held WHERE held.term IS NOT NULL
)
SELECT term FROM held WHERE term IS NOT NULL;

-- name: documents_of
SELECT memory, content, title, keywords, tags, category FROM lexical WHERE memory = ANY (as_keys(:keys));

-- name: documents
SELECT memory, content, title, keywords, tags, category FROM lexical ORDER BY memory;

-- name: clear
WITH gone AS (DELETE FROM posting)
DELETE FROM lexical;

-- name: missing
SELECT count(*) FROM memory AS m WHERE m.state != 'deleted' AND NOT EXISTS (SELECT 1 FROM lexical AS l WHERE l.memory = m.key);

-- name: orphans
SELECT count(*) FROM (SELECT memory FROM lexical UNION SELECT memory FROM posting UNION SELECT memory FROM fingerprint) AS l
WHERE NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.memory AND m.state != 'deleted');
