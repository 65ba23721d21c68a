-- What was packed from which inputs: a restart packs nothing again. The key is a digest of the inputs.
CREATE TABLE packings (key TEXT PRIMARY KEY, result TEXT NOT NULL, used_at BIGINT NOT NULL);
CREATE INDEX packings_by_use ON packings (used_at);

-- Which commit of each package is current in a ring, and which was before it. The signed states say the same.
CREATE TABLE picks (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    assignment TEXT NOT NULL,
    package TEXT NOT NULL,          -- platform, workload
    repo TEXT NOT NULL, commit_id TEXT NOT NULL,
    digest TEXT NOT NULL, size BIGINT NOT NULL,
    artifacts TEXT NOT NULL,        -- JSON list of digest and size
    previous_commit TEXT, previous_digest TEXT, previous_size BIGINT, previous_artifacts TEXT,
    since BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, assignment, package)
);

-- Generations that a cluster proved and this database doesn't know: the next one is above.
CREATE TABLE generation_floors (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    floor BIGINT NOT NULL,
    known BIGINT NOT NULL,          -- the newest one here when it was proven
    proven_at BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring)
);
