-- Version 13: finds a memory by its first revision or by a branch: the user's machines may know it
-- by several ids. The first index stays empty in stores that never took part in a sync.
CREATE INDEX revision_by_first_rev ON revision (rev) WHERE revision = 1 AND rev IS NOT NULL;
CREATE INDEX branch_by_rev ON branch (rev);
