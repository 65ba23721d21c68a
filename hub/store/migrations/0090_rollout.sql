-- Changes on their way through the rings of environments. Written by the leader under its term, except for people's words
-- and restarts. Times are milliseconds since 1970; JSON is TEXT.
CREATE TABLE rollouts (
    id BIGINT PRIMARY KEY,
    environment TEXT NOT NULL,
    lane TEXT NOT NULL,             -- platform, or repository@reference
    state TEXT NOT NULL,            -- Active, Paused, Stopped, Complete, RolledBack, Aborted, Superseded
    commit_id TEXT NOT NULL,        -- of the lane
    main TEXT,                      -- the main commit that it came with
    body TEXT NOT NULL,             -- JSON of the rollout without its items
    skipped TEXT NOT NULL,          -- JSON list of causes that waited and were taken over
    issued BIGINT NOT NULL,         -- 0: the desired states may still lag behind the body
    watched BIGINT NOT NULL,        -- 1: facts can still change it
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    tick BIGINT NOT NULL
);
CREATE INDEX rollouts_by_lane ON rollouts (environment, lane, id);
CREATE INDEX rollouts_by_commit ON rollouts (commit_id, id);
CREATE INDEX rollouts_by_tick ON rollouts (tick);
CREATE INDEX rollouts_watched ON rollouts (environment, id) WHERE watched = 1;

-- What moves: an assignment of a cluster type, and its new content.
CREATE TABLE rollout_items (
    rollout BIGINT NOT NULL,
    cluster_type TEXT NOT NULL, assignment TEXT NOT NULL,
    workload TEXT NOT NULL,
    commit_id TEXT NOT NULL,        -- of the application's source; empty: its package doesn't move
    body TEXT NOT NULL,             -- JSON: the parts that move, and to what
    PRIMARY KEY (rollout, cluster_type, assignment)
);
CREATE INDEX rollout_items_by_commit ON rollout_items (commit_id, rollout);
CREATE INDEX rollout_items_by_workload ON rollout_items (workload, rollout);

-- What a ring's state held before the rollout began there: the way back.
CREATE TABLE rollout_before (
    rollout BIGINT NOT NULL, ring TEXT NOT NULL,
    cluster_type TEXT NOT NULL, assignment TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (rollout, ring, cluster_type, assignment)
);

-- Names of packages under which clusters of a ring report the new content: counts are by them, never by generation.
CREATE TABLE rollout_keys (
    rollout BIGINT NOT NULL, ring TEXT NOT NULL,
    cluster_type TEXT NOT NULL, assignment TEXT NOT NULL,
    packages TEXT NOT NULL,
    PRIMARY KEY (rollout, ring, cluster_type, assignment, packages)
);

-- What people said. Any hub writes it, the leader takes it.
CREATE TABLE rollout_words (
    id BIGINT PRIMARY KEY,
    rollout BIGINT NOT NULL,
    environment TEXT NOT NULL,
    body TEXT NOT NULL,             -- JSON of the word
    said_at BIGINT NOT NULL,
    taken_at BIGINT,                -- null until the leader took it
    refused TEXT                    -- why it came to nothing
);
CREATE INDEX rollout_words_open ON rollout_words (environment, id) WHERE taken_at IS NULL;
CREATE INDEX rollout_words_by_rollout ON rollout_words (rollout, id);

-- The newest content that waits for the rollout before it in its lane.
CREATE TABLE rollout_waiting (
    environment TEXT NOT NULL, lane TEXT NOT NULL,
    body TEXT NOT NULL,             -- JSON: cause, fingerprint, skipped, behind which rollout, since
    PRIMARY KEY (environment, lane)
);

-- Content that went back or was aborted: it isn't started again until it changes or a person says so.
CREATE TABLE rollout_blocked (
    environment TEXT NOT NULL, lane TEXT NOT NULL,
    cluster_type TEXT NOT NULL, assignment TEXT NOT NULL,
    workload TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    rollout BIGINT NOT NULL,
    PRIMARY KEY (environment, lane, cluster_type, assignment, fingerprint)
);

-- Where each assignment's workload came from when it was last looked at: another place is the platform's change.
CREATE TABLE rollout_sources (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, assignment TEXT NOT NULL,
    workload TEXT NOT NULL,
    repo TEXT NOT NULL, reference TEXT NOT NULL, path TEXT NOT NULL,
    commit_id TEXT NOT NULL,        -- the head's
    observed TEXT NOT NULL,         -- of another reconciler's assignment: the content that was last made a rollout of
    PRIMARY KEY (environment, cluster_type, assignment)
);
CREATE INDEX rollout_sources_by_commit ON rollout_sources (commit_id);

-- The head that was last compared with all rings of an environment.
CREATE TABLE rollout_heads (
    environment TEXT PRIMARY KEY,
    commit_id TEXT NOT NULL,
    main TEXT NOT NULL,             -- empty: none, or not published whole yet
    at BIGINT NOT NULL
);

-- Assignments that can't be rendered or packed, and the commits with which that began; empty: before there was a policy.
CREATE TABLE rollout_quarantines (
    environment TEXT NOT NULL, assignment TEXT NOT NULL,
    commit_id TEXT NOT NULL, main TEXT NOT NULL,
    why TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (environment, assignment)
);

-- What a ring holds under a Pin: it comes back when the Pin ends.
CREATE TABLE pinned (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL, assignment TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, assignment)
);

-- How often people asked for a restart; it is in the desired states.
CREATE TABLE restarts (
    environment TEXT NOT NULL, cluster_type TEXT NOT NULL, ring TEXT NOT NULL, assignment TEXT NOT NULL,
    counter BIGINT NOT NULL,
    tick BIGINT NOT NULL,
    PRIMARY KEY (environment, cluster_type, ring, assignment)
);
CREATE INDEX restarts_by_tick ON restarts (tick);

-- How many clusters of a ring may be changing at once.
CREATE TABLE ring_limits (
    environment TEXT NOT NULL, ring TEXT NOT NULL,
    slots BIGINT NOT NULL,          -- -1: no limit
    closed BIGINT NOT NULL,         -- 1: nobody begins now
    tick BIGINT NOT NULL,
    PRIMARY KEY (environment, ring)
);
CREATE INDEX ring_limits_by_tick ON ring_limits (tick);
