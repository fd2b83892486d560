//! Columns of a text layout, found by a header that names them.

/// Number of columns examined; further columns are passed over.
const COLUMNS: usize = 32;

/// For each column of a line, which of `N` fields it holds.
pub(crate) struct Header<const N: usize> {
    fields: [u8; COLUMNS],
    /// Number of columns up to the last one used.
    used: usize,
}

impl<const N: usize> Header<N> {
    /// Finds the columns of these names, in upper or lower case; `None` if one of the first `needed` names is missing.
    pub(crate) fn of<'a>(
        columns: impl Iterator<Item = &'a [u8]>,
        names: &[&str; N],
        needed: usize,
    ) -> Option<Header<N>> {
        let mut header = Header { fields: [u8::MAX; COLUMNS], used: 0 };
        for (index, column) in columns.take(COLUMNS).enumerate() {
            if let Some(field) = names.iter().position(|name| column.eq_ignore_ascii_case(name.as_bytes())) {
                header.fields[index] = field as u8;
                header.used = index + 1;
            }
        }
        (0..needed).all(|field| header.has(field)).then_some(header)
    }

    /// Whether there is a column for a field.
    pub(crate) fn has(&self, field: usize) -> bool {
        self.fields.contains(&(field as u8))
    }

    /// Returns the fields of a line with these columns; a field without a column, or in a column that the line lacks,
    /// is `None`.
    #[inline]
    pub(crate) fn pick<'a>(&self, columns: impl Iterator<Item = &'a [u8]>) -> [Option<&'a [u8]>; N] {
        let mut found = [None; N];
        for (&field, column) in self.fields[..self.used].iter().zip(columns) {
            if let Some(place) = found.get_mut(usize::from(field)) {
                *place = Some(column);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Commas;

    #[test]
    fn columns_are_found_by_name() {
        let header = Header::of(Commas::of(b"x,B,a,y"), &["a", "b", "c"], 2).expect("a and b are there");
        assert_eq!(header.pick(Commas::of(b"1,2,3,4")), [Some(&b"3"[..]), Some(b"2"), None]);
        assert_eq!(header.pick(Commas::of(b"1,2")), [None, Some(&b"2"[..]), None]);
        assert_eq!([0, 1, 2].map(|field| header.has(field)), [true, true, false]);
        assert!(Header::of(Commas::of(b"a"), &["a", "b"], 2).is_none());
    }
}
