//! Channel batches (VIOS): within a chip batch, a request joins the first channel batch with which it has no channel
//! conflict.

use super::sets::{fill, join, meet};
use crate::request::Window;
use crate::util::NONE;

/// All channel batches, each with its channels and the next one of its chip batch.
#[derive(Clone, Debug)]
pub(super) struct ChannelBatches {
    channels: u32,
    /// Channel of each chip; `None` if it is the chip's number modulo `channels`.
    channel_of: Option<Vec<u32>>,
    /// Number of words in a set of channels.
    words: usize,
    next: Vec<u32>,
    sets: Vec<u64>,
    free: Vec<u32>,
    /// Scratch: the channels of a request.
    mask: Vec<u64>,
}

impl ChannelBatches {
    /// Makes empty channel batches for chips with these channels.
    pub fn new(channel_of: &[u32]) -> ChannelBatches {
        let channels = channel_of.iter().max().expect("there are chips") + 1;
        let words = channels.div_ceil(64) as usize;
        let in_turn = channel_of.iter().enumerate().all(|(chip, &channel)| chip as u32 % channels == channel);
        ChannelBatches {
            channels,
            channel_of: (!in_turn).then(|| channel_of.to_vec()),
            words,
            next: Vec::with_capacity(256),
            sets: Vec::with_capacity(256 * words),
            free: Vec::with_capacity(256),
            mask: vec![0; words],
        }
    }

    /// Returns the number, from 1, of the first channel batch without a channel conflict in the list that
    /// begins at `head`, or of a new one if there is none; adds the channels of these chips to it.
    pub fn join(&mut self, head: &mut u32, window: Window, chips: u32) -> u32 {
        self.fill_mask(window, chips);
        let words = self.words;
        let (mut at, mut last, mut number) = (*head, NONE, 1);
        while at != NONE {
            let set = &mut self.sets[at as usize * words..(at as usize + 1) * words];
            if !meet(set, &self.mask) {
                join(set, &self.mask);
                return number;
            }
            (last, at, number) = (at, self.next[at as usize], number + 1);
        }
        let new = self.store();
        match last {
            NONE => *head = new,
            last => self.next[last as usize] = new,
        }
        number
    }

    fn fill_mask(&mut self, window: Window, chips: u32) {
        let Some(channel_of) = &self.channel_of else {
            let width = window.width.min(self.channels);
            let window = Window { first: window.first % self.channels, width };
            return fill(&mut self.mask, window, self.channels);
        };
        self.mask.fill(0);
        for chip in window.members(chips) {
            let channel = channel_of[chip as usize];
            self.mask[channel as usize / 64] |= 1 << (channel % 64);
        }
    }

    /// Makes a new channel batch with the channels of the mask.
    fn store(&mut self) -> u32 {
        if let Some(free) = self.free.pop() {
            let from = free as usize * self.words;
            self.sets[from..from + self.words].copy_from_slice(&self.mask);
            self.next[free as usize] = NONE;
            return free;
        }
        self.next.push(NONE);
        self.sets.extend_from_slice(&self.mask);
        // Freeing channel batches must not allocate.
        self.free.reserve(self.next.len());
        self.next.len() as u32 - 1
    }

    /// Frees the list that begins at `head`.
    pub fn release(&mut self, mut head: u32) {
        while head != NONE {
            self.free.push(head);
            head = self.next[head as usize];
        }
    }
}
