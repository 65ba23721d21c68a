//! From commits to a `Platform` per environment, with the last good version of what broke.
