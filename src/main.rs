//! The binary: parse, call, exit code.

fn main() {}
