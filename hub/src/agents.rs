//! What agents ask: join, renew, poll, blobs, status; over mutual TLS.
