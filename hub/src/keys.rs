//! The hub's own secrets: signing keys, certificate authority, server certificate. Made at the first start, owned by `run`.
