//! The bytes that the device holds, stored by physical page.
//!
//! A slot keeps what was programmed into it until its block is erased, even if the FTL no longer uses it. A copy
//! within the flash shares the bytes; nothing is stored for what was never written.

use std::collections::VecDeque;

/// The number of the content of a page; 0: no content.
pub type Content = u32;

/// What the slots hold.
#[derive(Debug)]
pub struct Payload {
    page_bytes: usize,
    /// The content of each slot.
    slots: Vec<Content>,
    /// Contents, from number 1 on, and the number of slots that hold each.
    contents: Vec<Box<[u8]>>,
    held: Vec<u32>,
    free: Vec<Content>,
    /// Slots that were programmed, each with its new content, until [`Payload::take_programmed`] takes them.
    programmed: Option<VecDeque<(u32, Content)>>,
}

impl Payload {
    /// Makes `slots` erased slots for logical pages of `page_bytes` bytes.
    pub fn new(slots: usize, page_bytes: u32) -> Payload {
        Payload {
            page_bytes: page_bytes as usize,
            // The system supplies this memory zeroed, and none of it is in use until it is touched.
            slots: vec![0; slots],
            contents: vec![Box::default()],
            held: vec![0],
            free: Vec::new(),
            programmed: None,
        }
    }

    /// Makes every later program keep its slot and content for [`Payload::take_programmed`].
    pub fn keep_programmed(&mut self) {
        self.programmed.get_or_insert_default();
    }

    /// Takes the content from the slot's earliest program that has not been claimed; the caller must release the
    /// content.
    pub fn take_programmed(&mut self, slot: u32) -> Content {
        let Some(programmed) = &mut self.programmed else { return 0 };
        let at = programmed.iter().position(|&(other, _)| other == slot);
        at.and_then(|at| programmed.remove(at)).map_or(0, |(_, content)| content)
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the number of bytes of a logical page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Returns the number of bytes stored.
    pub fn bytes(&self) -> u64 {
        ((self.contents.len() - 1 - self.free.len()) * self.page_bytes) as u64
    }

    /// Returns what a slot holds; `None` if nothing was ever written into it, or it does not exist.
    pub fn read(&self, slot: u32) -> Option<&[u8]> {
        match self.slots.get(slot as usize) {
            None | Some(0) => None,
            Some(&content) => Some(&self.contents[content as usize]),
        }
    }

    /// Returns the bytes of the content with this number; `None` for number 0.
    pub fn content(&self, content: Content) -> Option<&[u8]> {
        (content != 0).then(|| &*self.contents[content as usize])
    }

    /// Returns the content of a slot, which is kept until the caller releases it.
    pub fn hold(&mut self, slot: u32) -> Content {
        let content = self.slots[slot as usize];
        self.held[content as usize] += u32::from(content != 0);
        content
    }

    /// Releases a content that [`Payload::hold`] or [`Payload::take_programmed`] has returned.
    pub fn release(&mut self, content: Content) {
        if content == 0 {
            return;
        }
        self.held[content as usize] -= 1;
        if self.held[content as usize] == 0 {
            // The memory is returned to the system's allocator.
            self.contents[content as usize] = Box::default();
            self.free.push(content);
        }
    }

    /// Programs a slot with what `from` holds, or with nothing if `from` is empty.
    pub fn share(&mut self, from: u32, slot: u32) {
        let content = self.slots.get(from as usize).copied().unwrap_or(0);
        self.put(slot, content);
        self.keep(slot);
    }

    /// Programs a slot with zeroes or with what `from` holds, overwritten by `write`.
    pub fn program(&mut self, from: u32, slot: u32, write: impl FnOnce(&mut [u8])) {
        let base = self.slots.get(from as usize).copied().unwrap_or(0);
        let content = self.free.pop().unwrap_or_else(|| {
            self.contents.push(vec![0; self.page_bytes].into());
            self.held.push(0);
            (self.contents.len() - 1) as Content
        });
        let mut page = std::mem::take(&mut self.contents[content as usize]);
        if page.is_empty() {
            page = vec![0; self.page_bytes].into();
        }
        match base {
            0 => page.fill(0),
            base => page.copy_from_slice(&self.contents[base as usize]),
        }
        write(&mut page);
        self.contents[content as usize] = page;
        self.put(slot, content);
        self.keep(slot);
    }

    /// Erases this many slots from `first` on.
    pub fn erase(&mut self, first: u32, slots: u32) {
        (first..first + slots).for_each(|slot| self.put(slot, 0));
    }

    fn put(&mut self, slot: u32, content: Content) {
        if content != 0 {
            self.held[content as usize] += 1;
        }
        let old = std::mem::replace(&mut self.slots[slot as usize], content);
        self.release(old);
    }

    fn keep(&mut self, slot: u32) {
        if self.programmed.is_some() {
            let content = self.hold(slot);
            self.programmed.get_or_insert_default().push_back((slot, content));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies share bytes, partial writes keep the rest of a page, and an erasure frees what no other slot
    /// holds.
    #[test]
    fn bytes_live_until_the_last_slot_that_holds_them_is_erased() {
        let mut payload = Payload::new(8, 4);
        assert_eq!(payload.read(3), None);
        payload.program(u32::MAX, 0, |page| page.copy_from_slice(b"abcd"));
        payload.share(0, 4);
        payload.program(4, 5, |page| page[1] = b'x');
        payload.erase(0, 4);
        assert_eq!((payload.read(0), payload.read(4)), (None, Some(&b"abcd"[..])));
        assert_eq!(payload.read(5), Some(&b"axcd"[..]));
        assert_eq!(payload.bytes(), 8);
        payload.erase(4, 4);
        assert_eq!((payload.bytes(), payload.read(5)), (0, None));
        payload.program(7, 6, |_| ());
        assert_eq!((payload.bytes(), payload.read(6)), (4, Some(&[0; 4][..])));
        payload.share(7, 6);
        assert_eq!((payload.bytes(), payload.read(6), payload.read(u32::MAX)), (0, None, None));
    }
}
