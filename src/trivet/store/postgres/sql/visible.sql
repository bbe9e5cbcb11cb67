-- name: has_all_tags
m.key IN (SELECT t.memory FROM memory_tag AS t WHERE t.tag {in_texts:tags}
          GROUP BY t.memory HAVING count(*) = cardinality(as_texts(:tags)));
