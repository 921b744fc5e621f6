//! The logic behind the Makefile.
fn main() {}
