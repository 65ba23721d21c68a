//! Bare mirrors of every repository the platform names, kept fresh by polling and webhooks; credentials; pushing.
