-- Version 13: a memory is found by its first revision, and by one that lies beside it: its user's machines may know it by
-- several ids. Stores that never took part in a sync have no such names, and so nothing in the first of these.
CREATE INDEX revision_by_first_rev ON revision (rev) WHERE revision = 1 AND rev IS NOT NULL;
CREATE INDEX branch_by_rev ON branch (rev);
