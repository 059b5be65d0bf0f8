//! HFile v3: blocks, codecs, encodings, indexes, bloom filters, reader and writer. Pure: bytes in, cells out.
