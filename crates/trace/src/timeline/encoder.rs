//! Protocol buffers as Perfetto's traces need them: varints, fixed 64-bit integers, strings, messages.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>; the field numbers are in Perfetto's
//! `protos/perfetto/trace`, and those used here in [`super::perfetto`].

/// A message under construction.
#[derive(Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Returns what has been encoded.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Empties the message, but keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds an unsigned integer, or the value of an enum.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Adds an integer that always takes eight bytes.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a string.
    pub fn text(&mut self, field: u32, value: &str) {
        self.message(field, |message| message.bytes.extend_from_slice(value.as_bytes()));
    }

    /// Adds a message inside this one; `fill` writes its fields.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        self.varint(u64::from(field) << 3 | 2);
        // Almost all lengths fit into the one byte that is kept free for them.
        let start = self.bytes.len();
        self.bytes.push(0);
        fill(self);
        let end = self.bytes.len();
        let length = end - start - 1;
        if length < 0x80 {
            self.bytes[start] = length as u8;
            return;
        }
        self.varint(length as u64);
        let length_bytes = self.bytes.len() - end;
        self.bytes[start + 1..].rotate_right(length_bytes);
        self.bytes.remove(start);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// The examples in the description of the encoding are encoded as stated there.
    #[test]
    fn encodes_as_described() {
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.as_bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.text(2, "testing");
        assert_eq!(message.as_bytes(), b"\x12\x07testing");
        message.clear();
        message.message(3, |inner| inner.uint(1, 150));
        assert_eq!(message.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        message.fixed(47, 0x0102);
        assert_eq!(message.as_bytes(), [0xf9, 0x02, 2, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        for length in [0, 1, 126, 127, 128, 129, 16_383, 16_384, 70_000] {
            let mut message = Message::default();
            message.uint(1, 7);
            message.message(2, |inner| inner.text(3, &"x".repeat(length)));
            let mut expected = vec![0x08, 7, 0x12];
            let mut inner = vec![0x1a];
            varint(&mut inner, length);
            inner.extend(std::iter::repeat_n(b'x', length));
            varint(&mut expected, inner.len());
            expected.extend(inner);
            assert_eq!(message.as_bytes(), expected);
        }
    }

    fn varint(bytes: &mut Vec<u8>, value: usize) {
        match value {
            0..0x80 => bytes.push(value as u8),
            0x80..0x4000 => bytes.extend([value as u8 & 0x7f | 0x80, (value >> 7) as u8]),
            _ => bytes.extend([value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8]),
        }
    }
}
