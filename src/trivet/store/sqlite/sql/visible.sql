-- name: has_all_tags
(SELECT count(*) FROM memory_tag AS t WHERE t.memory = m.key
 AND t.tag {in_texts:tags}) = json_array_length(:tags);
