-- What people ask for: one row per object of an environment, written by the leader as it changes.
CREATE TABLE catalog (
    kind TEXT NOT NULL,             -- environment, cluster-type, workload, deployment-target, assignment, problem, repository
    environment TEXT NOT NULL,
    name TEXT NOT NULL,
    parent TEXT NOT NULL,           -- an assignment's cluster type, a target's workload, a problem's assignment; else empty
    workspace TEXT NOT NULL,        -- whose it is; empty is the platform's
    state TEXT NOT NULL,            -- a word to filter by: rendered, quarantined, error, warning, good, failing
    labels TEXT NOT NULL,           -- JSON object
    body TEXT NOT NULL,             -- JSON, as a list shows it
    detail TEXT NOT NULL,           -- JSON that only the object's own page shows; else empty
    content TEXT NOT NULL,          -- names the row of catalog_values; else empty
    note TEXT NOT NULL,             -- JSON: why packing quarantined an assignment; else empty
    digest TEXT NOT NULL,           -- of all the columns before, without the note: same digest, no write
    updated_at BIGINT NOT NULL,
    tick BIGINT NOT NULL,
    PRIMARY KEY (kind, environment, name)
);
CREATE INDEX catalog_by_parent ON catalog (kind, environment, parent, name);
CREATE INDEX catalog_by_workspace ON catalog (kind, workspace, environment, parent, name);
CREATE INDEX catalog_by_tick ON catalog (kind, tick);

-- Composed configuration with the origin of each value; assignments to which the same values apply share a row.
CREATE TABLE catalog_values (
    environment TEXT NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (environment, digest)
);

-- What went, for those who watch; kept for a while.
CREATE TABLE catalog_gone (
    kind TEXT NOT NULL, environment TEXT NOT NULL, name TEXT NOT NULL,
    parent TEXT NOT NULL, workspace TEXT NOT NULL,
    tick BIGINT NOT NULL, gone_at BIGINT NOT NULL,
    PRIMARY KEY (kind, environment, name)
);
CREATE INDEX catalog_gone_by_tick ON catalog_gone (kind, tick);
CREATE INDEX catalog_gone_by_time ON catalog_gone (gone_at);

-- What an environment consists of besides assignments, as one digest: the same, and nothing of it is compared.
CREATE TABLE catalog_structures (environment TEXT PRIMARY KEY, digest TEXT NOT NULL);

-- Every write of a person or a program, with who, when, what, from where. Never changed.
CREATE TABLE audit (
    tick BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    token TEXT NOT NULL,            -- id of the access token; empty for the hub's own commands
    who TEXT NOT NULL,              -- the token's name
    role TEXT NOT NULL,
    action TEXT NOT NULL,           -- cluster.move, join-token.create, …
    object TEXT NOT NULL,
    environment TEXT NOT NULL,
    detail TEXT NOT NULL,           -- JSON, never a secret
    address TEXT NOT NULL,
    result TEXT NOT NULL            -- done, or the reason of the refusal
);
CREATE INDEX audit_by_token ON audit (token, tick);
CREATE INDEX audit_by_environment ON audit (environment, tick);
