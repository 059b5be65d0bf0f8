//! The store directory as a whole: recovery, routing, background workers, splits, administration.
