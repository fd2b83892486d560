//! What a completion in C says.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use ftlab::*;

/// Two pages are read that are in the write buffer.
#[test]
fn a_read_says_how_many_of_its_pages_were_in_ram() {
    let request = |op: u8, at_ns, offset, size| ftlab_request {
        at_ns,
        offset,
        size,
        stream: 0,
        op: op as c_char,
        fua: 0,
    };
    let requests = [request(b'W', 0, 4096, 8192), request(b'R', 1, 4096, 8192)];
    let set = [c"device.precondition=none".as_ptr(), c"device.write_buffer=1MiB".as_ptr()];
    let options = ftlab_options { set: set.as_ptr(), set_count: 2, load_state: null(), flags: 0 };
    let (mut sim, mut done, mut count) = (null_mut(), [ftlab_completion::default(); 2], 0);
    let codes = unsafe {
        [
            ftlab_open(c"map-plus".as_ptr(), &options, &mut sim),
            ftlab_submit_many(sim, requests.as_ptr(), 2, null_mut(), null_mut()),
            ftlab_drain(sim, done.as_mut_ptr(), 2, &mut count),
            ftlab_close(sim),
        ]
    };
    // The library's hook keeps back the messages of all panics.
    drop(std::panic::take_hook());
    assert_eq!((codes, count), ([ftlab_code::FTLAB_OK as i32; 4], 2));
    assert_eq!(done.map(|row| row.buffered), [0, 2]);
}
