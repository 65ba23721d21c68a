-- A person's "don't touch this assignment here", as signed documents: one of the hub's for each cluster, one of each cluster's own.
CREATE TABLE holds (
    cluster TEXT NOT NULL,
    writer TEXT NOT NULL,           -- hub, cluster
    sequence BIGINT NOT NULL,       -- counts the writer's documents for this cluster
    envelope BYTEA NOT NULL,        -- JSON
    received_at BIGINT NOT NULL,
    PRIMARY KEY (cluster, writer)
);
-- The hub's document that polls are told of.
ALTER TABLE clusters ADD COLUMN hold_sequence BIGINT NOT NULL DEFAULT 0;
