-- Tokens of people and programs for /api/v1; only a hash of the secret is kept.
CREATE TABLE api_tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,             -- viewer, application, platform
    workspaces TEXT NOT NULL,       -- JSON list; of the role application
    secret_hash TEXT NOT NULL,      -- SHA-256 in hexadecimal digits
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used BIGINT
);
