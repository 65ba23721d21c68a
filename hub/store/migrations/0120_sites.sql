-- Who carried a cluster's last sign of life: another cluster's id, or `file`; nothing when it came itself.
ALTER TABLE clusters ADD COLUMN via TEXT;
-- 1: it may fetch for the other streams of its site.
ALTER TABLE clusters ADD COLUMN relay BIGINT NOT NULL DEFAULT 0;
CREATE INDEX clusters_by_site ON clusters (site, environment, cluster_type, ring) WHERE site IS NOT NULL AND state = 'active';
-- Who left a site, in the order of leaving.
CREATE INDEX clusters_gone_from_site ON clusters (site, tick) WHERE site IS NOT NULL AND state <> 'active';
