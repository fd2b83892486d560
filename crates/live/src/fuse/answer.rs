//! The answer to one request of the kernel, sent once the engine has replied to every part of it.

use std::sync::Mutex;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

use crate::engine::Sink;
use crate::nbd;

/// Offset of the data in an NBD reply without chunks.
const DATA_AT: usize = 16;

/// How a request of the kernel is answered: with data, with the number of bytes written, or with success alone.
pub(super) enum Answer {
    Data(ReplyData),
    Written(ReplyWrite, u32),
    Done(ReplyEmpty),
}

/// A request of the kernel, which may have become several requests to the engine.
pub(super) struct Pending(pub Mutex<State>);

/// The outcome of a request of the kernel, as far as it is known.
pub(super) struct State {
    /// Number of replies still to come.
    pub left: usize,
    /// The number of the first error; 0: none.
    pub error: u32,
    /// The last reply.
    pub reply: Vec<u8>,
    /// How to answer the kernel; taken when the answer is sent.
    pub answer: Option<Answer>,
}

impl Sink for Pending {
    fn put(&self, reply: Vec<u8>, _: usize) {
        let mut state = self.0.lock().expect("no panic while a reply is put");
        state.left -= 1;
        if state.error == 0 {
            state.error = u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"));
        }
        state.reply = reply;
    }

    fn kick(&self) {
        let mut state = self.0.lock().expect("no panic while a reply is put");
        if state.left > 0 {
            return;
        }
        let Some(answer) = state.answer.take() else { return };
        let error = (state.error != 0).then(|| Errno::from_i32(state.error as i32));
        match (answer, error) {
            (Answer::Data(kernel), None) => kernel.data(&state.reply[DATA_AT..]),
            (Answer::Written(kernel, bytes), None) => kernel.written(bytes),
            (Answer::Done(kernel), None) => kernel.ok(),
            (Answer::Data(kernel), Some(error)) => kernel.error(error),
            (Answer::Written(kernel, _), Some(error)) => kernel.error(error),
            (Answer::Done(kernel), Some(error)) => kernel.error(error),
        }
    }

    fn lose(&self) {
        let mut state = self.0.lock().expect("no panic while a reply is put");
        (state.left, state.error) = (0, nbd::Errno::Io as u32);
        drop(state);
        self.kick();
    }
}
