//! Cells not yet flushed: active and snapshot segments.
