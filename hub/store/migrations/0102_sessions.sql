-- Who is logged in on the page, and links that log in once.
CREATE TABLE web_sessions (
    id TEXT PRIMARY KEY,            -- SHA-256 of the secret, in hexadecimal digits
    kind TEXT NOT NULL,             -- session, link
    token TEXT NOT NULL,            -- id of the access token that it stands for
    expires_at BIGINT NOT NULL
);
CREATE INDEX web_sessions_by_end ON web_sessions (expires_at);
