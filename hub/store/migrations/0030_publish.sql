-- What was published where, and what waits. Times are milliseconds since 1970; JSON is TEXT.

-- The branch that the rows below are about; another one starts anew.
CREATE TABLE publish_targets (environment TEXT PRIMARY KEY, repo TEXT NOT NULL, branch TEXT NOT NULL);

-- What the schedule wanted of each file when it was last published: who changed a file is seen against it.
CREATE TABLE published_files (
    environment TEXT NOT NULL, path TEXT NOT NULL,
    blob_id TEXT NOT NULL,
    PRIMARY KEY (environment, path)
);

-- Commits of ours. One is intended before its push and published after it.
CREATE TABLE publications (
    environment TEXT NOT NULL, number BIGINT NOT NULL,
    repo TEXT NOT NULL, branch TEXT NOT NULL,
    base TEXT,                      -- the head it was built on; none for a new branch
    commit_id TEXT NOT NULL,
    content TEXT NOT NULL,          -- digest of what the schedule wanted
    subject TEXT NOT NULL,
    changes TEXT NOT NULL,          -- JSON object: path to blob id, null when deleted; empty once published
    state TEXT NOT NULL,            -- intended, published, superseded
    created_at BIGINT NOT NULL,
    PRIMARY KEY (environment, number)
);

-- Per cluster type: everything that was published since a person last confirmed it.
CREATE TABLE confirmed_sets (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL,
    assignments TEXT NOT NULL,      -- JSON list of names
    size BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    confirmed_by TEXT,              -- who confirmed it last
    PRIMARY KEY (environment, cluster_type)
);

-- Removals that wait for a person.
CREATE TABLE removals_waiting (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL,
    gone TEXT NOT NULL,             -- JSON list of names
    of_size BIGINT NOT NULL,        -- of the confirmed set
    since BIGINT NOT NULL,
    approved TEXT,                  -- JSON list: what somebody agreed to lose
    approved_by TEXT,
    approved_at BIGINT,
    PRIMARY KEY (environment, cluster_type)
);

-- One per environment: the open pull request, or how the last one ended.
CREATE TABLE pull_requests (
    environment TEXT PRIMARY KEY,
    branch TEXT NOT NULL,           -- ours
    asked TEXT,                     -- JSON: the commit on our branch, what it was built on, its content and changes
    intended TEXT,                  -- the same of a commit that is about to be pushed
    number BIGINT,                  -- none where the server has no pull requests that we know of
    url TEXT,
    state TEXT NOT NULL,            -- open, landed, merged, declined, withdrawn
    updated_at BIGINT NOT NULL
);

-- Files of ours that people changed on the environment's branch.
CREATE TABLE hand_edits (
    environment TEXT NOT NULL, path TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    author TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (environment, path)
);
