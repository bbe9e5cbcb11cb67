-- Row-level security by user for further tables with words. A memory's own column holds its tags,
-- so that reading a memory does not query memory_tag, which in turn shows the tags of visible
-- memories. The owners who share by tags and those tags are read first: two small sets for all rows
-- instead of a query for each.
DROP POLICY one_user ON memory;
CREATE POLICY one_user ON memory AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = ''
    OR owner = (SELECT coalesce(current_setting('trivet.viewer', true), ''))
    OR (NOT sensitive AND state != 'deleted' AND (
        EXISTS (SELECT 1 FROM share AS s WHERE s.memory = memory.key AND s.grantee IN ((SELECT coalesce(current_setting('trivet.viewer', true), '')), '*'))
        OR (owner IN (SELECT s.owner FROM tag_share AS s WHERE s.grantee IN ((SELECT coalesce(current_setting('trivet.viewer', true), '')), '*'))
            AND tags::jsonb ?| ARRAY(SELECT s.tag FROM tag_share AS s WHERE s.grantee IN ((SELECT coalesce(current_setting('trivet.viewer', true), '')), '*'))
            AND EXISTS (SELECT 1 FROM tag_share AS s
                        WHERE s.owner = memory.owner AND s.grantee IN ((SELECT coalesce(current_setting('trivet.viewer', true), '')), '*')
                        AND memory.tags::jsonb ? s.tag))))
);
CREATE POLICY one_user ON memory_tag AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = memory_tag.memory)
);
CREATE POLICY one_user ON usage AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = usage.memory)
);
-- Not through the memory, whose policy reads this table.
CREATE POLICY one_user ON share AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) IN ('', grantee) OR grantee = '*'
);
CREATE POLICY one_user ON tag_share AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) IN ('', grantee, owner) OR grantee = '*'
);

CREATE POLICY one_user ON meta AS RESTRICTIVE FOR SELECT USING (
    (SELECT coalesce(current_setting('trivet.viewer', true), '')) = '' OR name != 'salt'
);

-- Tables that no user reads.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['vault', 'vault_file', 'vault_part', 'vault_link', 'once'] LOOP
        EXECUTE format('CREATE POLICY one_user ON %I AS RESTRICTIVE FOR SELECT
                        USING ((SELECT coalesce(current_setting(''trivet.viewer'', true), '''')) = '''')', name);
    END LOOP;
END $$;
