-- name: note
-- One statement in key order, so that two processes that count the same memories cannot deadlock.
INSERT INTO usage (memory, shown, last_shown) SELECT m.key, w.times, :at::text FROM ({times_of_each}) AS w JOIN memory AS m ON m.id = w.id
WHERE true ORDER BY m.key
ON CONFLICT ({tenant}memory) DO UPDATE
SET shown = usage.shown + excluded.shown, last_shown = CASE WHEN excluded.last_shown > usage.last_shown THEN excluded.last_shown ELSE usage.last_shown END;

-- name: times_of_each
-- From the lists :ids and :times. Every store writes its own.

-- name: begin
INSERT INTO meta (name, value) VALUES ('usage counted since', :at) ON CONFLICT ({tenant}name) DO NOTHING;

-- name: since
SELECT value FROM meta WHERE name = 'usage counted since';

-- name: of
SELECT m.id, u.shown, u.last_shown,
       (SELECT count(*) FROM feedback AS f WHERE f.memory = m.key AND f.verdict = 'useful'
        AND (:viewer::text IS NULL OR f.actor = :viewer)) AS useful,
       (SELECT count(*) FROM feedback AS f WHERE f.memory = m.key AND f.verdict = 'not-useful'
        AND (:viewer::text IS NULL OR f.actor = :viewer)) AS not_useful
FROM memory AS m LEFT JOIN usage AS u ON u.memory = m.key WHERE m.id = :id;

-- name: all
-- Feedback of all users.
SELECT m.id, coalesce(u.shown, 0) AS shown, u.last_shown,
       coalesce(sum(CASE WHEN f.verdict = 'useful' THEN 1 ELSE 0 END), 0) AS useful,
       coalesce(sum(CASE WHEN f.verdict = 'not-useful' THEN 1 ELSE 0 END), 0) AS not_useful
FROM memory AS m LEFT JOIN usage AS u ON u.memory = m.key LEFT JOIN feedback AS f ON f.memory = m.key
WHERE u.memory IS NOT NULL OR f.memory IS NOT NULL
GROUP BY m.id, u.shown, u.last_shown ORDER BY m.id;

-- name: shown
SELECT m.id FROM usage AS u JOIN memory AS m ON m.key = u.memory;

-- name: judge
INSERT INTO feedback (memory, actor, query, verdict, at) SELECT key, :actor::text, :query::text, :verdict::text, :at::text FROM memory WHERE id = :id
ON CONFLICT ({tenant}memory, actor, query) DO UPDATE SET verdict = excluded.verdict, at = excluded.at;

-- name: judged
SELECT m.id, f.query, f.verdict, f.at FROM feedback AS f JOIN memory AS m ON m.key = f.memory
WHERE f.query != '' ORDER BY f.at, m.id, f.actor;
