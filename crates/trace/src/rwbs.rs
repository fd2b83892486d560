//! The flags of Linux's block events (`blk_fill_rwbs`, and blkparse's own copy of it).
//!
//! `[F] op {F|A|S|M|E|U...}`: an F before the op asks for a flush before it, the op is R, W, D
//! (discard), DE (secure erase), F (flush) or N (none), and then come FUA (F), readahead (A),
//! sync (S), metadata (M) and others, which do not change what is transferred.

use ftlab_core::workload::Op;

/// What the flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rwbs {
    /// The operation on data; `None`: N, or an operation of zoned devices.
    pub(crate) op: Option<Op>,
    /// What was written before must be durable first, or the data itself at completion.
    pub(crate) barrier: bool,
}

/// Parses the flags; `None` if they follow no such grammar.
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
    Some(Rwbs { op, barrier: preflush || modifiers.contains(&b'F') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        let op = |flags: &str| parse(flags.as_bytes()).map(|rwbs| (rwbs.op, rwbs.barrier));
        for flags in ["R", "RA", "RS", "RM", "RSM", "RAM"] {
            assert_eq!(op(flags), Some((Some(Op::Read), false)), "{flags}");
        }
        for flags in ["W", "WS", "WSM", "WM", "WA"] {
            assert_eq!(op(flags), Some((Some(Op::Write), false)), "{flags}");
        }
        for flags in ["WF", "WFS", "FW", "FWS", "FWFS", "FWFSM", "WFSM"] {
            assert_eq!(op(flags), Some((Some(Op::Write), true)), "{flags}");
        }
        for flags in ["D", "DS", "DE"] {
            assert_eq!(op(flags), Some((Some(Op::Trim), false)), "{flags}");
        }
        for flags in ["F", "FF", "FN", "FS", "FFS"] {
            assert_eq!(op(flags), Some((Some(Op::Flush), true)), "{flags}");
        }
        assert_eq!(op("N"), Some((None, false)));
        assert_eq!(op("NS"), Some((None, false)));
        for flags in ["", "S", "X", "r", "R1", "W-", "123"] {
            assert_eq!(op(flags), None, "{flags}");
        }
    }
}
