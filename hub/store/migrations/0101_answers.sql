-- What answers about the whole fleet look up. Each index is partial or of a table that changes seldom: documents arrive by the
-- thousand, and every index of theirs is written with them.

-- Failures and reports that can't be read are few; a wave of Converging rows isn't indexed a third time.
CREATE INDEX conditions_amiss ON conditions (condition, cluster) WHERE condition <> 'Converging';
CREATE INDEX conditions_drifted ON conditions (cluster) WHERE drift IS NOT NULL;

-- Rollouts that haven't ended, among all that ever were.
CREATE INDEX rollouts_unfinished ON rollouts (environment, state) WHERE state IN ('Active', 'Paused', 'Stopped');

-- Quarantines among all assignments.
CREATE INDEX catalog_quarantined ON catalog (kind, environment, workspace)
    WHERE kind = 'assignment' AND (state = 'quarantined' OR note <> '');

-- What a pair of packages is to people. Clusters report pairs; a pair never means anything else.
CREATE TABLE contents (
    packages TEXT PRIMARY KEY,
    version TEXT,
    platform_commit TEXT NOT NULL,
    workload_commit TEXT NOT NULL
);
