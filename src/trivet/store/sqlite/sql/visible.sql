-- name: has_all_tags
(SELECT count(*) FROM memory_tag AS t WHERE t.memory = m.key
 AND t.tag {in_texts:tags}) = json_array_length(:tags);

-- name: day_of_creation
-- SQLite knows no day after the year 9999, which a clock ahead of UTC can reach.
coalesce(date(m.created_at, :utc_offset || ' minutes'), substr(m.created_at, 1, 10));

-- name: tags
-- The + keeps SQLite from looking up each memory in memory_tag; it reads the tags in order, three
-- times as fast.
SELECT t.tag, count(*) FROM memory_tag AS t WHERE +t.memory IN (SELECT m.key FROM memory AS m WHERE {visible})
GROUP BY t.tag ORDER BY 2 DESC, 1 LIMIT :limit;
