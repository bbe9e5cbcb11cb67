-- Every recall asks for the newest and the failed jobs; these find them without reading the queue.
CREATE INDEX job_newest ON job (tenant, model, memory);
CREATE INDEX job_failed ON job (tenant, model, not_before) WHERE attempts > 0;
CREATE INDEX reading_failed ON reading (tenant, reader, not_before) WHERE attempts > 0;
