-- What agents warn of. The signed documents are the truth; this is made from them as they arrive, and can be made again.
ALTER TABLE documents ADD COLUMN warned TEXT;   -- JSON: what the cluster adds to `warning_counts`; nothing: not looked at yet
CREATE INDEX documents_unwarned ON documents (cluster) WHERE warned IS NULL;

CREATE TABLE warnings (
    cluster TEXT NOT NULL,
    code TEXT NOT NULL,             -- as the agent says it, such as `DiskLimit.<assignment>`
    kind TEXT NOT NULL,             -- what it is counted as: a code that the hub knows, or `AgentWarning`
    severity TEXT NOT NULL,         -- error, warning
    message TEXT NOT NULL,          -- one line, bounded
    since BIGINT NOT NULL,          -- in the hub's time
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL,  -- the cluster's
    PRIMARY KEY (cluster, code)
);
CREATE INDEX warnings_by_kind ON warnings (environment, kind, cluster_type, since, cluster);

-- How many clusters warn of something: each once, by the worst that it says. Kept as documents arrive.
CREATE TABLE warning_counts (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, kind, severity)
);
