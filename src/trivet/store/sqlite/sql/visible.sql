-- name: has_all_tags
(SELECT count(*) FROM memory_tag AS t WHERE t.memory = m.key
 AND t.tag {in_texts:tags}) = json_array_length(:tags);

-- name: day_of_creation
-- SQLite knows no day after the year 9999, into which a clock ahead of UTC can lead.
coalesce(date(m.created_at, :utc_offset || ' minutes'), substr(m.created_at, 1, 10));

-- name: tags
-- The + keeps SQLite from looking each memory up in memory_tag: it goes through the tags in order, three times as fast.
SELECT t.tag, count(*) FROM memory_tag AS t WHERE +t.memory IN (SELECT m.key FROM memory AS m WHERE {visible})
GROUP BY t.tag ORDER BY 2 DESC, 1 LIMIT :limit;
