//! From a `Schedule` to a commit or a pull request on the environment's branch.
