//! From status documents to conditions, counts and promises.
