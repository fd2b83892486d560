//! The flags of Linux's block events (`blk_fill_rwbs`, and blkparse's own copy of it).
//!
//! `[F] op {F|A|S|M|E|U...}`: a leading F asks for a flush first; the op is R, W, D (discard), DE (secure
//! erase), F (flush) or N (none); then come FUA (F), readahead (A), sync (S), metadata (M) and others, which
//! do not change what is transferred.

use ftlab_core::workload::{Op, Record};

/// The meaning of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rwbs {
    /// The operation on data; `None`: N, or an operation of zoned devices.
    pub(crate) op: Option<Op>,
    /// Whether everything written before must be made durable first.
    pub(crate) preflush: bool,
    /// Whether the data must be durable at completion.
    pub(crate) fua: bool,
}

impl Rwbs {
    /// Returns the flags of the request's record. Only writes of data have FUA.
    pub(crate) fn record_flags(self) -> u8 {
        let fua = self.fua && self.op == Some(Op::Write);
        (u8::from(fua) * Record::FUA) | (u8::from(self.preflush) * Record::PREFLUSH)
    }
}

/// Number of requests that had each of these flags.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flagged {
    fua: u64,
    preflush: u64,
}

impl Flagged {
    /// Counts the flags of a record, and returns them.
    pub(crate) fn count(&mut self, rwbs: Rwbs) -> u8 {
        let flags = rwbs.record_flags();
        self.fua += u64::from(flags & Record::FUA != 0);
        self.preflush += u64::from(flags & Record::PREFLUSH != 0);
        flags
    }

    /// Returns notes for people who read the figures.
    pub(crate) fn notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.fua > 0 {
            notes.push(format!("{} writes have FUA", self.fua));
        }
        if self.preflush > 0 {
            notes.push(format!(
                "{} requests ask for a flush before them, which counts as one more request",
                self.preflush
            ));
        }
        notes
    }
}

/// Parses the flags; returns `None` if they do not follow the grammar.
pub(crate) fn parse(flags: &[u8]) -> Option<Rwbs> {
    let (preflush, rest) = match flags {
        [b'F', rest @ ..] => (true, rest),
        _ => (false, flags),
    };
    let (op, modifiers) = match rest {
        [b'R', rest @ ..] => (Some(Op::Read), rest),
        [b'W', rest @ ..] => (Some(Op::Write), rest),
        [b'D', rest @ ..] => (Some(Op::Trim), rest),
        [b'F', rest @ ..] => (Some(Op::Flush), rest),
        [b'N' | b'Z', rest @ ..] => (None, rest),
        // "F", "FS": a flush whose op letter is the leading F itself.
        rest if preflush => (Some(Op::Flush), rest),
        _ => return None,
    };
    if !modifiers.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    // "FN": a flush as blkparse prints it.
    let op = if preflush && op.is_none() { Some(Op::Flush) } else { op };
    Some(Rwbs { op, preflush, fua: modifiers.contains(&b'F') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        let parsed = |flags: &str| parse(flags.as_bytes()).map(|rwbs| (rwbs.op, rwbs.preflush, rwbs.fua));
        for flags in ["R", "RA", "RS", "RM", "RSM", "RAM"] {
            assert_eq!(parsed(flags), Some((Some(Op::Read), false, false)), "{flags}");
        }
        for flags in ["W", "WS", "WSM", "WM", "WA"] {
            assert_eq!(parsed(flags), Some((Some(Op::Write), false, false)), "{flags}");
        }
        for flags in ["WF", "WFS", "WFSM"] {
            assert_eq!(parsed(flags), Some((Some(Op::Write), false, true)), "{flags}");
        }
        for flags in ["FW", "FWS", "FWSM"] {
            assert_eq!(parsed(flags), Some((Some(Op::Write), true, false)), "{flags}");
        }
        for flags in ["FWF", "FWFS", "FWFSM"] {
            assert_eq!(parsed(flags), Some((Some(Op::Write), true, true)), "{flags}");
        }
        for flags in ["D", "DS", "DE"] {
            assert_eq!(parsed(flags), Some((Some(Op::Trim), false, false)), "{flags}");
        }
        for flags in ["F", "FF", "FN", "FS", "FFS"] {
            assert_eq!(parsed(flags).map(|(op, ..)| op), Some(Some(Op::Flush)), "{flags}");
        }
        assert_eq!(parsed("N"), Some((None, false, false)));
        assert_eq!(parsed("NS"), Some((None, false, false)));
        for flags in ["", "S", "X", "r", "R1", "W-", "123"] {
            assert_eq!(parsed(flags), None, "{flags}");
        }
    }

    #[test]
    fn only_writes_have_fua() {
        let flags = |flags: &str| parse(flags.as_bytes()).expect("flags").record_flags();
        assert_eq!(["W", "WFS", "FWS", "FWFS"].map(flags), [0, 1, 2, 3]);
        assert_eq!(["R", "RF", "DF", "FRF"].map(flags), [0, 0, 0, 2]);
    }
}
