-- How commits of main move from environment to environment. Times are milliseconds since 1970; JSON is TEXT.

-- The PromotionPolicy that counts (`force`), a looser one that waits for people (`waiting`), and why the newest can't be
-- read (`broken`).
CREATE TABLE policies (
    slot TEXT PRIMARY KEY,
    body TEXT NOT NULL,             -- JSON; empty: there is none
    digest TEXT NOT NULL,
    commit_id TEXT NOT NULL,        -- of main, with its first line and author
    subject TEXT NOT NULL,
    author TEXT NOT NULL,
    reasons TEXT NOT NULL,          -- JSON list: in which ways it is looser, or what is wrong with it
    words TEXT NOT NULL,            -- JSON list: who agreed
    since BIGINT NOT NULL
);

-- Where each environment of the policy is.
CREATE TABLE promotions (
    environment TEXT PRIMARY KEY,
    body TEXT NOT NULL,             -- JSON: the commit in force and its promotions
    in_force TEXT,                  -- the commit of main that the environment is read at: its branch has named it
    trouble TEXT,                   -- why its branch doesn't name the current one
    updated_at BIGINT NOT NULL,
    tick BIGINT NOT NULL
);

-- What people say about promotions, on any hub; the leader takes it. Environment empty: about the policy that waits.
CREATE TABLE promotion_words (
    id BIGINT PRIMARY KEY,
    environment TEXT NOT NULL,
    commit_id TEXT NOT NULL,        -- of main; empty: the one that waits
    body TEXT NOT NULL,             -- JSON
    taken_at BIGINT,
    refused TEXT                    -- why it had no effect
);
CREATE INDEX promotion_words_waiting ON promotion_words (id) WHERE taken_at IS NULL;

-- The pull request that asks for a promotion where the environment's branch takes no push.
CREATE TABLE promotion_requests (
    environment TEXT PRIMARY KEY,
    branch TEXT NOT NULL,           -- ours
    main_commit TEXT NOT NULL,      -- what it promotes
    asked TEXT NOT NULL,            -- the commit that our branch shall hold
    previous TEXT,                  -- what it held before: a push may not have come
    base TEXT NOT NULL,             -- what that was built on
    number BIGINT,                  -- none where the server has no pull requests that we know of
    url TEXT,
    state TEXT NOT NULL,            -- open, declined
    updated_at BIGINT NOT NULL
);

-- What was true when a commit passed: signed, kept for ever.
CREATE TABLE evidence (
    id BIGINT PRIMARY KEY,
    environment TEXT NOT NULL,      -- empty: all of them
    commit_id TEXT NOT NULL,
    kind TEXT NOT NULL,             -- promotion, rollout, policy
    rollout BIGINT,
    event TEXT NOT NULL,            -- passed, overridden, reopened, completed, ended, loosened
    body TEXT NOT NULL,             -- JSON of a DSSE envelope around an in-toto statement
    created_at BIGINT NOT NULL
);
CREATE INDEX evidence_by_environment ON evidence (environment, id);
CREATE INDEX evidence_by_commit ON evidence (commit_id, id);
CREATE INDEX evidence_by_rollout ON evidence (kind, rollout);

-- What external checks said last, for the gate of a ring of a rollout.
CREATE TABLE checks (
    rollout BIGINT NOT NULL, ring TEXT NOT NULL, name TEXT NOT NULL,
    ok BIGINT NOT NULL,
    said TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (rollout, ring, name)
);

-- What Git servers were told about commits: told again only when it changes.
CREATE TABLE commit_statuses (
    repo TEXT NOT NULL, commit_id TEXT NOT NULL, context TEXT NOT NULL,
    state TEXT NOT NULL,
    description TEXT NOT NULL,
    told_at BIGINT NOT NULL,
    PRIMARY KEY (repo, commit_id, context)
);
