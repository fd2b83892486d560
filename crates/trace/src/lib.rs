//! Trace readers: every supported format, compressed or not, as one stream of records.
