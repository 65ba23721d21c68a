-- When a person last let a cluster back in that had been silent for too long; 0: nobody had to.
ALTER TABLE clusters ADD COLUMN readmitted_at BIGINT NOT NULL DEFAULT 0;
