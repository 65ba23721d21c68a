//! End-to-end tests and the lab that starts their real parts: Git over HTTP, Gitea, PostgreSQL, hubs and simulated agents.
