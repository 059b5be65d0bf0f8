//! The command `cellfs`.
fn main() {}
