-- Who of a ring with a limit is changing now: it was told a newer state and hasn't said a final condition of it yet.
CREATE TABLE slots (
    cluster TEXT PRIMARY KEY,
    environment TEXT NOT NULL, ring TEXT NOT NULL,
    cluster_type TEXT NOT NULL,
    generation BIGINT NOT NULL,     -- of the state that it was told
    since BIGINT NOT NULL
);
CREATE INDEX slots_by_ring ON slots (environment, ring);
-- How many of a ring may change at once; written by the rollouts' desk before the states that it is about.
CREATE TABLE IF NOT EXISTS ring_limits (
    environment TEXT NOT NULL, ring TEXT NOT NULL,
    slots BIGINT NOT NULL,          -- -1: no limit
    closed BIGINT NOT NULL,         -- 1: nobody begins now
    tick BIGINT NOT NULL,
    PRIMARY KEY (environment, ring)
);
