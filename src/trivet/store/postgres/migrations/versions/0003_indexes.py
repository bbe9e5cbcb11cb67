"""The indexes beside the keys."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import index_online

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    index_online(
        {
            "memory_by_creation": "memory (tenant, created_at, id)",
            "memory_by_importance": "memory (tenant, importance, created_at, id)",
            "memory_bounded": "memory (tenant, key) WHERE valid_from IS NOT NULL OR valid_to IS NOT NULL",
            "memory_tag_by_tag": "memory_tag (tenant, tag)",
            "link_by_target": "link (tenant, target, kind)",
            "posting_by_memory": "posting (tenant, memory)",
            "fingerprint_by_memory": "fingerprint (tenant, memory)",
            "passage_by_model": "passage (tenant, model, memory)",
            "job_due": "job (tenant, model, not_before, memory)",
            "mention_by_concept": "mention (tenant, concept, memory)",
            "mention_by_form": "mention (tenant, form, concept)",
            "statement_by_target": "statement (tenant, target)",
            "statement_by_memory": "statement (tenant, memory)",
            "reading_due": "reading (tenant, reader, not_before, memory)",
        }
    )
