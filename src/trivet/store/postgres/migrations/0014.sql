-- A passage of a long text knows its terms, so that a recall need not analyse the text to choose among them.
-- NULL is for those stored before, until the next `trivet reindex`.
ALTER TABLE passage ADD COLUMN terms text;
