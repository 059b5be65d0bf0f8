//! Which files to compact (a pure function), and the throttle.
