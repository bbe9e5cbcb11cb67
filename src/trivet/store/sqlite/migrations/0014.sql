-- Version 14: every recall asks for the newest and the failed jobs; these find them without reading
-- the queue.
CREATE INDEX job_newest ON job (model, memory);
CREATE INDEX job_failed ON job (model, not_before) WHERE attempts > 0;
CREATE INDEX reading_failed ON reading (reader, not_before) WHERE attempts > 0;
