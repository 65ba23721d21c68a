-- What happened, as an append-only log: one table for each day (`history_20261116`, by the true time of what happened, UTC),
-- made when the day's first entry comes and dropped as a whole. Times are milliseconds since 1970; JSON is TEXT.
CREATE TABLE history_days (
    day BIGINT PRIMARY KEY,         -- 20261116
    entries BIGINT NOT NULL,
    bytes BIGINT NOT NULL,          -- with indexes, estimated
    last_id BIGINT NOT NULL         -- the newest entry by the order of recording
);

-- Up to which of a cluster's events its document was told: each is taken once.
ALTER TABLE documents ADD COLUMN told BIGINT NOT NULL DEFAULT 0;
