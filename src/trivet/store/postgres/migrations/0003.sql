-- outside a transaction
-- Secondary indexes, built while others write.
CREATE INDEX CONCURRENTLY IF NOT EXISTS memory_by_creation ON memory (tenant, created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS memory_by_importance ON memory (tenant, importance, created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS memory_bounded ON memory (tenant, key) WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS memory_tag_by_tag ON memory_tag (tenant, tag);
CREATE INDEX CONCURRENTLY IF NOT EXISTS link_by_target ON link (tenant, target, kind);
CREATE INDEX CONCURRENTLY IF NOT EXISTS posting_by_memory ON posting (tenant, memory);
CREATE INDEX CONCURRENTLY IF NOT EXISTS fingerprint_by_memory ON fingerprint (tenant, memory);
CREATE INDEX CONCURRENTLY IF NOT EXISTS passage_by_model ON passage (tenant, model, memory);
CREATE INDEX CONCURRENTLY IF NOT EXISTS job_due ON job (tenant, model, not_before, memory);
CREATE INDEX CONCURRENTLY IF NOT EXISTS mention_by_concept ON mention (tenant, concept, memory);
CREATE INDEX CONCURRENTLY IF NOT EXISTS mention_by_form ON mention (tenant, form, concept);
CREATE INDEX CONCURRENTLY IF NOT EXISTS statement_by_target ON statement (tenant, target);
CREATE INDEX CONCURRENTLY IF NOT EXISTS statement_by_memory ON statement (tenant, memory);
CREATE INDEX CONCURRENTLY IF NOT EXISTS reading_due ON reading (tenant, reader, not_before, memory);
