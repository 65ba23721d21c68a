-- Persons: what approvals count. A token belongs to one; each token that there was becomes a person of its own.
CREATE TABLE people (
    id TEXT PRIMARY KEY,            -- opaque, never changes
    name TEXT NOT NULL,
    emails TEXT NOT NULL,           -- JSON list, lower case; as an administrator set them
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,       -- id of the person; empty: on the hub's host, or before there were persons
    removed_at BIGINT
);
INSERT INTO people (id, name, emails, created_at, created_by)
    SELECT 'p' || id, name, '[]', created_at, '' FROM api_tokens;
ALTER TABLE api_tokens ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE api_tokens ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
UPDATE api_tokens SET person = 'p' || id;
CREATE INDEX api_tokens_by_person ON api_tokens (person);
ALTER TABLE audit ADD COLUMN person TEXT NOT NULL DEFAULT '';
