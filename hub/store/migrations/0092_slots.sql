-- Who of a ring with a limit is changing now: it was told a newer state and hasn't said a final condition of it yet.
CREATE TABLE slots (
    cluster TEXT PRIMARY KEY,
    environment TEXT NOT NULL, ring TEXT NOT NULL,
    cluster_type TEXT NOT NULL,
    generation BIGINT NOT NULL,     -- of the state that it was told
    since BIGINT NOT NULL
);
CREATE INDEX slots_by_ring ON slots (environment, ring);
