-- What several rooms read. Times are milliseconds since 1970; JSON is TEXT.
CREATE TABLE ticks (id BIGINT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO ticks (id, value) VALUES (1, 0);

CREATE TABLE leader (id BIGINT PRIMARY KEY, term BIGINT NOT NULL, holder TEXT NOT NULL, since BIGINT NOT NULL);
INSERT INTO leader (id, term, holder, since) VALUES (1, 0, '', 0);

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);

-- The hub's key sets, every version, as signed.
CREATE TABLE key_sets (version BIGINT PRIMARY KEY, envelope BYTEA NOT NULL);

-- Desired states: written before they are served, never changed, never reused.
CREATE TABLE states (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    generation BIGINT NOT NULL,
    content TEXT NOT NULL,          -- digest of what it says, without generation and time: same content, no new state
    envelope BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    tick BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, generation)
);
CREATE INDEX states_by_tick ON states (tick);

-- One row per cluster; its membership is the newest envelope.
CREATE TABLE clusters (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL,
    labels TEXT NOT NULL,           -- JSON object
    site TEXT,
    public_key BYTEA NOT NULL,
    machine TEXT,
    facts TEXT NOT NULL,            -- JSON object
    state TEXT NOT NULL,            -- active, retired, revoked, replaced
    sequence BIGINT NOT NULL,       -- of the membership
    membership BYTEA NOT NULL,      -- the signed envelope
    joined_at BIGINT NOT NULL,
    token TEXT NOT NULL,            -- id of the join token
    certificate_serial TEXT NOT NULL,
    certificate_until BIGINT NOT NULL,
    last_contact BIGINT NOT NULL,
    promise_until BIGINT NOT NULL,  -- next contact is expected before this
    unknown_since BIGINT,           -- set once the promise is broken
    look_at BIGINT,                 -- when the agent last looked at everything it runs
    generation BIGINT NOT NULL,     -- last accepted, as reported
    cloned_since BIGINT,            -- two hosts with this identity were seen
    tick BIGINT NOT NULL
);
CREATE UNIQUE INDEX clusters_by_name ON clusters (name, id);
CREATE INDEX clusters_by_stream ON clusters (environment, cluster_type, ring, name, id);
CREATE INDEX clusters_by_tick ON clusters (tick);
CREATE INDEX clusters_by_promise ON clusters (promise_until);
