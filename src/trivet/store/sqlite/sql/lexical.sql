-- name: insert
INSERT INTO lexical (rowid, content, title, keywords, tags, category)
VALUES (:key, :content, :title, :keywords, :tags, :category);

-- name: delete
DELETE FROM lexical WHERE rowid = :key;

-- name: postings
SELECT doc * 8 + (CASE col WHEN 'content' THEN 0 WHEN 'title' THEN 1 WHEN 'keywords' THEN 2 WHEN 'tags' THEN 3
                  ELSE 4 END)
FROM lexical_term WHERE term = :term;

-- name: document
SELECT content, title, keywords, tags, category FROM lexical WHERE rowid = :key;

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
