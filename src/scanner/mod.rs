//! Merge of cell sources and the query matcher: versions, deletes, time to live, time ranges.
