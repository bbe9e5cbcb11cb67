-- Version 14: of what waits, the newest and what failed are found without looking at all of it. Every recall asks for both.
CREATE INDEX job_newest ON job (model, memory);
CREATE INDEX job_failed ON job (model, not_before) WHERE attempts > 0;
CREATE INDEX reading_failed ON reading (reader, not_before) WHERE attempts > 0;
