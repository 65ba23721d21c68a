//! The program `kedge-agent`.

fn main() {}
