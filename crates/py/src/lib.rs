//! The Python extension module ftlab._core.
