-- How far each destination of webhooks has got in the history, by the name that the configuration gives it. Written by the
-- leader under its term. Times are milliseconds since 1970.
CREATE TABLE event_destinations (
    name TEXT PRIMARY KEY,
    entry BIGINT NOT NULL,          -- of the history: up to this one all were taken, or are not for this destination
    sent BIGINT NOT NULL,
    given_up BIGINT NOT NULL,       -- refused for so long that they were left out
    waiting_since BIGINT,           -- when the oldest that wasn't taken was recorded
    failing_since BIGINT,           -- nothing was taken since
    error TEXT,
    updated_at BIGINT NOT NULL
);
