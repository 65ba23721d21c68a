//! Objects as real controllers write them.
