//! The encodings of whole numbers. Positions are in a page that is followed by [`SLACK`](super::page::SLACK)
//! bytes.

use super::thrift::{ENDS, varint, zigzag};

/// A reader of small numbers, which are stored as runs of one number and as groups packed with a fixed number of bits
/// for each number ("RLE/bit-packing hybrid").
#[derive(Clone, Copy, Debug)]
pub(super) struct Hybrid {
    bits: u32,
    /// Where the next run begins, and where the data ends.
    at: usize,
    end: usize,
    /// How many numbers are left in the run.
    left: usize,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Same(u32),
    /// First bit of the next number.
    Packed(usize),
}

impl Hybrid {
    /// Makes a reader of numbers of `bits` bits in `data[at..end]`.
    pub(super) fn new(bits: u32, at: usize, end: usize) -> Result<Hybrid, String> {
        if bits > 32 {
            return Err(format!("numbers of {bits} bits in a dictionary's place"));
        }
        Ok(Hybrid { bits, at, end, left: 0, run: Run::Same(0) })
    }

    /// Reads the next numbers, as many as `out` takes.
    pub(super) fn fill(&mut self, data: &[u8], mut out: &mut [u32]) -> Result<(), String> {
        while !out.is_empty() {
            if self.left == 0 {
                self.next_run(data)?;
                continue;
            }
            let (now, later) = out.split_at_mut(out.len().min(self.left));
            match &mut self.run {
                Run::Same(value) => now.fill(*value),
                Run::Packed(bit) => {
                    if now.len().saturating_mul(self.bits as usize) > self.end * 8 - *bit {
                        return Err(ENDS.into());
                    }
                    let mask = mask(self.bits as usize);
                    for value in &mut *now {
                        *value = (word(data, *bit) & mask) as u32;
                        *bit += self.bits as usize;
                    }
                }
            }
            self.left -= now.len();
            out = later;
        }
        Ok(())
    }

    /// Skips the next `count` numbers if the current run shows that all of them are `number`; returns whether they were
    /// skipped.
    pub(super) fn pass(&mut self, data: &[u8], count: usize, number: u32) -> Result<bool, String> {
        while self.left == 0 {
            self.next_run(data)?;
        }
        let all = self.left >= count && matches!(self.run, Run::Same(value) if value == number);
        if all {
            self.left -= count;
        }
        Ok(all)
    }

    fn next_run(&mut self, data: &[u8]) -> Result<(), String> {
        if self.bits == 0 {
            (self.left, self.run) = (usize::MAX, Run::Same(0));
            return Ok(());
        }
        let data = &data[..self.end];
        let head = varint(data, &mut self.at)?;
        let count = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        if head & 1 == 1 {
            self.left = count.saturating_mul(8);
            self.run = Run::Packed(self.at * 8);
            // The last group may be cut off after the last value.
            self.at = self.at.saturating_add(count.saturating_mul(self.bits as usize)).min(self.end);
        } else {
            let bytes = self.bits.div_ceil(8) as usize;
            let part = data.get(self.at..self.at + bytes).ok_or(ENDS)?;
            let value = part.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            (self.left, self.run) = (count, Run::Same(value));
            self.at += bytes;
        }
        Ok(())
    }
}

/// A reader of numbers stored as differences, in blocks of groups, each group with its own width
/// ("DELTA_BINARY_PACKED").
#[derive(Clone, Copy, Debug)]
pub(super) struct Delta {
    /// Where the next block begins, and where the data ends.
    at: usize,
    end: usize,
    /// Number of groups in a block, and of numbers in a group.
    groups: usize,
    length: usize,
    /// The next group of the block, and where the widths of the block's groups are.
    group: usize,
    widths: usize,
    /// How many numbers are left in the group, their width in bits, and the first bit of the next number.
    left: usize,
    bits: usize,
    bit: usize,
    /// The least difference in the block.
    least: i64,
    /// The next number, and how many are left including it.
    next: i64,
    numbers: usize,
}

impl Delta {
    /// Makes a reader of the numbers in `data[at..end]`.
    pub(super) fn new(data: &[u8], mut at: usize, end: usize) -> Result<Delta, String> {
        let data = &data[..end];
        let mut number = || varint(data, &mut at);
        let (block, groups, numbers) = (number()?, number()?, number()?);
        let next = zigzag(number()?);
        let length = block.checked_div(groups).filter(|&length| length > 0 && block <= 1 << 20);
        let length = length.ok_or("differences in blocks that cannot be")? as usize;
        let groups = groups as usize;
        Ok(Delta {
            at,
            end,
            groups,
            length,
            group: groups,
            widths: 0,
            left: 0,
            bits: 0,
            bit: 0,
            least: 0,
            next,
            numbers: usize::try_from(numbers).unwrap_or(usize::MAX),
        })
    }

    /// Reads the next numbers, as many as `out` takes.
    pub(super) fn fill(&mut self, data: &[u8], out: &mut [i64]) -> Result<(), String> {
        for value in out {
            self.numbers = self.numbers.checked_sub(1).ok_or(ENDS)?;
            *value = self.next;
            if self.numbers == 0 {
                continue;
            }
            if self.left == 0 {
                self.next_group(data)?;
            }
            // The number is read in halves, since a word may provide only 57 bits.
            let low = word(data, self.bit) & mask(self.bits.min(32));
            let high = word(data, self.bit + 32) & mask(self.bits.saturating_sub(32));
            self.next = self.next.wrapping_add(self.least).wrapping_add((high << 32 | low) as i64);
            self.bit += self.bits;
            self.left -= 1;
        }
        Ok(())
    }

    fn next_group(&mut self, data: &[u8]) -> Result<(), String> {
        let data = &data[..self.end];
        if self.group == self.groups {
            self.least = zigzag(varint(data, &mut self.at)?);
            self.widths = self.at;
            self.at += self.groups;
            self.group = 0;
        }
        self.bits = usize::from(*data.get(self.widths + self.group).ok_or(ENDS)?);
        self.bit = self.at * 8;
        self.at += (self.length * self.bits).div_ceil(8);
        if self.bits > 64 || self.at > self.end {
            return Err(ENDS.into());
        }
        self.group += 1;
        self.left = self.length;
        Ok(())
    }
}

/// Returns at least 57 bits of the data, starting at `bit`.
#[inline]
fn word(data: &[u8], bit: usize) -> u64 {
    let bytes = data[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes) >> (bit % 8)
}

/// Returns a mask of this many bits, at most 32.
fn mask(bits: usize) -> u64 {
    (1 << bits) - 1
}
