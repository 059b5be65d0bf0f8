//! Key bytes to file names and back: one bijection (contract.md, section 2).
