//! Puts the rooms together and runs them until told to stop. Called by `main` and by tests.
