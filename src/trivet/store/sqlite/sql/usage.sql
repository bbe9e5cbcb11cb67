-- name: note
INSERT INTO usage (memory, shown, last_shown) SELECT key, :times, :at FROM memory WHERE id = :id
ON CONFLICT (memory) DO UPDATE
SET shown = usage.shown + excluded.shown, last_shown = max(usage.last_shown, excluded.last_shown);

-- name: begin
INSERT INTO meta (name, value) VALUES ('usage counted since', :at) ON CONFLICT (name) DO NOTHING;

-- name: since
SELECT value FROM meta WHERE name = 'usage counted since';

-- name: of
SELECT m.id, u.shown, u.last_shown,
       (SELECT count(*) FROM feedback AS f WHERE f.memory = m.key AND f.verdict = 'useful'
        AND (:viewer IS NULL OR f.actor = :viewer)) AS useful,
       (SELECT count(*) FROM feedback AS f WHERE f.memory = m.key AND f.verdict = 'not-useful'
        AND (:viewer IS NULL OR f.actor = :viewer)) AS not_useful
FROM memory AS m LEFT JOIN usage AS u ON u.memory = m.key WHERE m.id = :id;

-- name: shown
SELECT m.id FROM usage AS u JOIN memory AS m ON m.key = u.memory;

-- name: judge
INSERT INTO feedback (memory, actor, query, verdict, at) SELECT key, :actor, :query, :verdict, :at FROM memory WHERE id = :id
ON CONFLICT (memory, actor, query) DO UPDATE SET verdict = excluded.verdict, at = excluded.at;

-- name: judged
SELECT m.id, f.query, f.verdict, f.at FROM feedback AS f JOIN memory AS m ON m.key = f.memory
WHERE f.query != '' ORDER BY f.at, m.id, f.actor;
