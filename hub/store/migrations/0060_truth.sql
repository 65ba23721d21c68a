-- What clusters say of themselves. The signed documents are the truth; the rest is made from them and can be made again.
CREATE TABLE documents (
    cluster TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    nonce TEXT NOT NULL,
    heads TEXT NOT NULL,            -- of the epoch's document, short form, comma between
    received_at BIGINT NOT NULL,
    written_at BIGINT NOT NULL,     -- by the writer, in the hub's time as far as the writer knew it
    via TEXT,                       -- who brought it: a cluster's id, or nothing for a person
    tally TEXT NOT NULL,            -- JSON: what this cluster adds to the counts
    envelopes BYTEA NOT NULL        -- JSON array: one, or the few histories whose merge is the document
);

-- Exceptions only: a report that is plainly Converged has no row.
CREATE TABLE conditions (
    cluster TEXT NOT NULL,
    assignment TEXT NOT NULL,
    condition TEXT NOT NULL,        -- as reported; a cluster that is Unknown makes all of its own Unknown
    packages TEXT NOT NULL,         -- desired; empty: none
    running TEXT NOT NULL,          -- empty: none
    generation BIGINT NOT NULL,
    version TEXT,
    reason TEXT,
    message TEXT,
    drift TEXT,
    since BIGINT NOT NULL,
    observed_at BIGINT NOT NULL,
    corrected BIGINT NOT NULL,      -- 1: the cluster's clock was wrong, and the times are corrected
    PRIMARY KEY (cluster, assignment)
);
CREATE INDEX conditions_by_assignment ON conditions (assignment, condition, cluster);

-- How many clusters, kept as documents arrive: a lookup, whatever the size of the fleet.
CREATE TABLE counts (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    assignment TEXT NOT NULL,
    packages TEXT NOT NULL,         -- desired by the report
    running TEXT NOT NULL,
    condition TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, assignment, packages, running, condition)
);
CREATE INDEX counts_by_running ON counts (environment, running);
CREATE INDEX counts_by_packages ON counts (environment, packages);

-- How many members each stream has: Joined (no document yet), Reporting, Unknown.
CREATE TABLE population (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    presence TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, presence)
);

-- Promises that can still be broken, and no others: what is due is found without looking at the rest.
DROP INDEX clusters_by_promise;
CREATE INDEX clusters_by_promise ON clusters (promise_until) WHERE unknown_since IS NULL AND state = 'active';
CREATE INDEX clusters_unknown ON clusters (environment, cluster_type, ring, unknown_since) WHERE unknown_since IS NOT NULL AND state = 'active';
-- The member of a stream that is furthest behind: a tombstone stays until it has been there.
CREATE INDEX clusters_by_generation ON clusters (environment, cluster_type, ring, generation) WHERE state = 'active';
