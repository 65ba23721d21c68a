//! What people may read about the platform, kept in the database so that every hub can answer.
