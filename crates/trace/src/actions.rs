//! Which of the actions that blktrace records for an I/O counts as its arrival.

/// The action whose rows count as requests, by blkparse's letter, and the number of rows of actions I and D.
pub(crate) struct Counted {
    action: u8,
    /// Whether completions were recorded besides.
    pub(crate) completions: bool,
    inserts: u64,
    issues: u64,
}

impl Default for Counted {
    fn default() -> Counted {
        Counted::of(std::iter::empty())
    }
}

impl Counted {
    /// Chooses the action according to those that occur at the beginning of a file: Q (queued) if it occurs; else I
    /// (inserted), unless fewer were inserted than issued or completed; else D (issued); else C (completed).
    pub(crate) fn of(actions: impl Iterator<Item = u8>) -> Counted {
        let mut rows = [0; 4];
        for action in actions {
            match action {
                b'Q' => rows[0] += 1,
                b'I' => rows[1] += 1,
                b'D' => rows[2] += 1,
                b'C' => rows[3] += 1,
                _ => {}
            }
        }
        let action = match rows {
            [0, inserts, issues, completions] if inserts > 0 && inserts >= issues.max(completions) => b'I',
            [0, _, issues, _] if issues > 0 => b'D',
            [0, _, _, completions] if completions > 0 => b'C',
            _ => b'Q',
        };
        Counted { action, completions: rows[3] > 0 && action != b'C', inserts: 0, issues: 0 }
    }

    /// Whether the rows of `action` count as requests.
    #[inline]
    pub(crate) fn counts(&mut self, action: u8) -> bool {
        self.inserts += u64::from(action == b'I');
        self.issues += u64::from(action == b'D');
        action == self.action
    }

    /// Returns a note for people who read the figures.
    pub(crate) fn note(&self) -> String {
        let missing = match self.action {
            b'I' if self.issues > self.inserts => {
                format!("; {} more were issued (D), which are left out", self.issues - self.inserts)
            }
            b'D' if self.inserts > 0 => format!("; those of action I are fewer ({})", self.inserts),
            _ => String::new(),
        };
        format!("counted the rows of action {}{missing}", char::from(self.action))
    }
}
