-- Which commit a version of a workload was packed from, so that a Pin can name it later. A version that moved is where it was last.
CREATE TABLE versions (
    repo TEXT NOT NULL,
    path TEXT NOT NULL,             -- the folder of the workload, without `./`
    version TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (repo, path, version)
);
