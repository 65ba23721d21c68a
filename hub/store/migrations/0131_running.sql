-- The two packages of a pair: what a cluster reports names the pair, and the configuration is in the platform's package. Rows of
-- before have none until the leader has looked them up in the states; `-`: no state names them any more.
ALTER TABLE contents ADD COLUMN platform TEXT NOT NULL DEFAULT '';
ALTER TABLE contents ADD COLUMN workload TEXT NOT NULL DEFAULT '';
CREATE INDEX contents_nameless ON contents (packages) WHERE platform = '';
