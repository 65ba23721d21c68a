-- A rollback passes what holds a ring's other rollouts: who has a state that was issued before this tick gets the newest one.
ALTER TABLE ring_limits ADD COLUMN returned BIGINT NOT NULL DEFAULT 0;  -- 0: nothing went back there yet
