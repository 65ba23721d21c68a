-- What the list of problems looks up. Each index is partial: it holds the few that need somebody, and is written only when a
-- cluster becomes one of them or leaves.
CREATE INDEX clusters_cloned ON clusters (environment, cluster_type, cloned_since)
    WHERE cloned_since IS NOT NULL AND state = 'active';
-- Renewed every few weeks: contacts don't write it.
CREATE INDEX clusters_by_certificate ON clusters (certificate_until, environment, cluster_type) WHERE state = 'active';
CREATE INDEX rollouts_rolled_back ON rollouts (environment, lane, id) WHERE state = 'RolledBack';
CREATE INDEX catalog_stale ON catalog (kind, environment, workspace) WHERE state = 'stale';
