//! From the branch's head to packages: deterministic archives, stored by digest.
