-- name: has_all_tags
m.key IN (SELECT t.memory FROM memory_tag AS t WHERE t.tag {in_texts:tags}
          GROUP BY t.memory HAVING count(*) = cardinality(as_texts(:tags)));

-- name: shared_by_tag
-- By the memory's own column: row-level security binds memory_tag to visible memories, which would
-- evaluate this again. Owners who share by tags, and those tags, come first: two small sets for all
-- rows.
(m.owner IN (SELECT s.owner FROM tag_share AS s WHERE s.grantee IN (:viewer, '*'))
 AND m.tags::jsonb ?| ARRAY(SELECT s.tag FROM tag_share AS s WHERE s.grantee IN (:viewer, '*'))
 AND EXISTS (SELECT 1 FROM tag_share AS s
             WHERE s.owner = m.owner AND s.grantee IN (:viewer, '*') AND m.tags::jsonb ? s.tag));

-- name: tags
-- Not from memory_tag: for a user, each of its rows is looked up among the memories again.
SELECT t.tag, count(*) FROM memory AS m, jsonb_array_elements_text(m.tags::jsonb) AS t (tag)
WHERE {visible} GROUP BY t.tag ORDER BY 2 DESC, t.tag COLLATE "C" LIMIT :limit;

-- name: day_of_creation
-- At most the year 9999: a clock ahead of UTC can lead beyond, and such a text would sort before
-- all others.
to_char(least(m.created_at::timestamp + make_interval(mins => :utc_offset), '9999-12-31'), 'YYYY-MM-DD');
