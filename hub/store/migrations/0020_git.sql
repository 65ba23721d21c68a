-- What the mirrors know: the heads that were last good, and what fails since when.
CREATE TABLE repositories (
    repo TEXT PRIMARY KEY,          -- the address in the form that all its spellings share
    url TEXT NOT NULL,
    refs TEXT NOT NULL,             -- JSON: by ref its commit, what fails, and whether it was rewritten
    last_good BIGINT,               -- the last time the server answered
    failing_since BIGINT,
    error TEXT, hint TEXT,
    attempts BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Webhooks that came to a hub that doesn't lead: the leader fetches these at once.
CREATE TABLE nudges (repo TEXT PRIMARY KEY, at BIGINT NOT NULL);

-- The last good version of every object of every environment, as text and place; decoded again when it is needed.
CREATE TABLE good_objects (
    environment TEXT NOT NULL, kind TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL,
    repo TEXT NOT NULL, revision TEXT NOT NULL, file TEXT NOT NULL,
    text_id TEXT NOT NULL,
    stale_since TEXT,               -- RFC 3339; set while the source can't be used
    PRIMARY KEY (environment, kind, owner, name)
);
CREATE INDEX good_objects_by_text ON good_objects (text_id);
CREATE TABLE good_texts (id TEXT PRIMARY KEY, text BYTEA NOT NULL);

-- The environments that the control plane declared when it was last read well.
CREATE TABLE good_environments (
    name TEXT PRIMARY KEY,
    repo TEXT NOT NULL, branch TEXT NOT NULL, path TEXT NOT NULL,
    stale_since TEXT
);

-- Names of targets on an environment's branch, and whose they are: of two tenants with one name this one keeps it.
CREATE TABLE published_names (
    environment TEXT NOT NULL, name TEXT NOT NULL,
    registration TEXT NOT NULL, workload TEXT NOT NULL, target TEXT NOT NULL,
    PRIMARY KEY (environment, name)
);
