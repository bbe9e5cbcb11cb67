-- name: insert
INSERT INTO lexical (rowid, content, title, keywords, tags, category)
VALUES (:key, :content, :title, :keywords, :tags, :category);

-- name: delete
DELETE FROM lexical WHERE rowid = :key;

-- name: postings
SELECT doc * 8 + (CASE col WHEN 'content' THEN 0 WHEN 'title' THEN 1 WHEN 'keywords' THEN 2 WHEN 'tags' THEN 3
                  ELSE 4 END)
FROM lexical_term WHERE term = :term;

-- name: terms_from
-- One index lookup per term, so that a common term's occurrences are not all read.
WITH RECURSIVE held (term) AS (
    SELECT * FROM (SELECT term FROM lexical_term WHERE term >= :low AND term < :high LIMIT 1)
    UNION ALL
    SELECT (SELECT term FROM lexical_term WHERE term >= held.term || char(1) AND term < :high LIMIT 1)
    FROM held WHERE held.term IS NOT NULL
)
SELECT term FROM held WHERE term IS NOT NULL;

-- name: documents_of
SELECT l.rowid, l.content, l.title, l.keywords, l.tags, l.category
FROM json_each(:keys) AS wanted CROSS JOIN lexical AS l ON l.rowid = wanted.value;

-- name: documents
SELECT rowid, content, title, keywords, tags, category FROM lexical ORDER BY rowid;

-- name: clear
DELETE FROM lexical;

-- name: optimize
INSERT INTO lexical (lexical) VALUES ('optimize');

-- name: integrity
INSERT INTO lexical (lexical, rank) VALUES ('integrity-check', 0);

-- name: missing
SELECT count(*) FROM memory AS m WHERE m.state != 'deleted' AND NOT EXISTS (SELECT 1 FROM lexical WHERE rowid = m.key);

-- name: orphans
SELECT count(*) FROM lexical AS l
WHERE NOT EXISTS (SELECT 1 FROM memory AS m WHERE m.key = l.rowid AND m.state != 'deleted');
