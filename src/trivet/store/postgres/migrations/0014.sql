-- The terms of a long text's passages, so that a recall can choose among them without analyzing the
-- text. NULL for older passages until the next `trivet reindex`.
ALTER TABLE passage ADD COLUMN terms text;
