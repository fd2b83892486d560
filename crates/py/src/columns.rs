//! Columns of numbers that NumPy and polars read without a copy.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

enum Data {
    U64(Vec<u64>),
    U32(Vec<u32>),
    U8(Vec<u8>),
}

/// A read-only column; `numpy.asarray(column)` shares its memory.
#[pyclass(frozen, module = "ftlab._core")]
pub struct Column {
    data: Data,
    /// What a buffer view points to; it lives as long as the column.
    shape: [isize; 1],
    strides: [isize; 1],
}

impl Column {
    fn new(data: Data, length: usize, item: usize) -> Column {
        let length = isize::try_from(length).expect("a Vec is no longer than isize::MAX");
        Column { data, shape: [length], strides: [item as isize] }
    }

    /// Returns the address, the bytes of an item and its `struct` format.
    fn parts(&self) -> (*const c_void, isize, &'static CStr) {
        match &self.data {
            Data::U64(values) => (values.as_ptr().cast(), 8, c"Q"),
            Data::U32(values) => (values.as_ptr().cast(), 4, c"I"),
            Data::U8(values) => (values.as_ptr().cast(), 1, c"B"),
        }
    }
}

impl From<Vec<u64>> for Column {
    fn from(values: Vec<u64>) -> Column {
        let length = values.len();
        Column::new(Data::U64(values), length, 8)
    }
}

impl From<Vec<u32>> for Column {
    fn from(values: Vec<u32>) -> Column {
        let length = values.len();
        Column::new(Data::U32(values), length, 4)
    }
}

impl From<Vec<u8>> for Column {
    fn from(values: Vec<u8>) -> Column {
        let length = values.len();
        Column::new(Data::U8(values), length, 1)
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.shape[0] as usize
    }

    /// # Safety
    /// `view` is null or points to a `Py_buffer` to be filled, as the buffer protocol demands.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the column is read-only"));
        }
        let column = slf.get();
        let (address, item, format) = column.parts();
        let wants = |flag| flags & flag == flag;
        // SAFETY: `view` is valid for writes (see above). Everything that it is made to point to belongs to
        // the column, which is frozen and kept alive by the reference in `obj`.
        unsafe {
            (*view).buf = address.cast_mut();
            (*view).len = column.shape[0] * item;
            (*view).readonly = 1;
            (*view).itemsize = item;
            (*view).format =
                if wants(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).ndim = 1;
            (*view).shape =
                if wants(ffi::PyBUF_ND) { column.shape.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).strides =
                if wants(ffi::PyBUF_STRIDES) { column.strides.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
