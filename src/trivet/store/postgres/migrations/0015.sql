-- Finds a memory by its first revision or by a branch: the user's machines may know it by several
-- ids.
CREATE INDEX revision_by_first_rev ON revision (tenant, rev) WHERE revision = 1 AND rev IS NOT NULL;
CREATE INDEX branch_by_rev ON branch (tenant, rev);
