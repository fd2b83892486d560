//! Benchmarks of ftlab.
