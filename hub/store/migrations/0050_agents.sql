-- What a person hands to a new cluster. The secret itself is never stored.
CREATE TABLE join_tokens (
    id TEXT PRIMARY KEY,
    secret_hash TEXT NOT NULL,      -- SHA-256, hexadecimal
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL,
    labels TEXT NOT NULL,           -- JSON object
    site TEXT,
    replaces TEXT,                  -- id of the cluster whose place the new one takes
    uses BIGINT NOT NULL,
    uses_left BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX join_tokens_by_creation ON join_tokens (created_at, id);

-- Who came in with it: a lost answer may be asked for again.
CREATE TABLE token_uses (
    token TEXT NOT NULL,
    cluster TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (token, cluster)
);
