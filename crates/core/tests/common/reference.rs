//! A second, plain model of BAST and FAST: merges, copies and erases of a sequence of writes.
//!
//! Written from the paper's text (Shim et al., TC 2014, sections 2.2, 5.2 and 5.4), with lists of pages that are
//! searched for everything, only to be compared with the implementation. It has no time, no physical addresses and no
//! map: a block is the list of (page, version) programmed in it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

/// The figures that a model has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// (count, copies) for each kind: full, partial, switch, padded switch and cooperative merges.
    pub merges: [(u64, u64); 5],
    pub erases: u64,
}

const FULL: usize = 0;
const PARTIAL: usize = 1;
const SWITCH: usize = 2;
const COOPERATIVE: usize = 4;

/// A page as programmed: logical page and version.
type Page = (u32, u32);

/// The pages of a block, in order; `None` where a page was left out.
type Block = Vec<Option<Page>>;

/// The log blocks of one chip.
#[derive(Clone, Debug, Default)]
struct Chip {
    /// BAST: each log block with its logical block, the least recently written first.
    pairs: Vec<(u32, Block)>,
    /// FAST: the RW log blocks, the oldest first; then the logical block and the content of the SW log block.
    random: Vec<Block>,
    sequential: Option<(u32, Block)>,
    limit: usize,
}

/// The model of BAST or FAST.
pub struct Model {
    fast: bool,
    block_pages: u32,
    lpns: u32,
    threshold: u32,
    chips: Vec<Chip>,
    data: BTreeMap<u32, Block>,
    /// Newest version of each page that has data, and the number of times that each page was changed.
    newest: BTreeMap<u32, u32>,
    changes: BTreeMap<u32, u32>,
    /// The cooperative merge in progress.
    cooperative: Option<(u32, Block)>,
    pub tally: Tally,
}

impl Model {
    pub fn new(fast: bool, block_pages: u32, lpns: u32, logs: &[usize], threshold: u32) -> Model {
        let chip = |&limit: &usize| Chip { limit: limit - usize::from(fast), ..Chip::default() };
        Model {
            fast,
            block_pages,
            lpns,
            threshold,
            chips: logs.iter().map(chip).collect(),
            data: BTreeMap::new(),
            newest: BTreeMap::new(),
            changes: BTreeMap::new(),
            cooperative: None,
            tally: Tally::default(),
        }
    }

    fn chip(&self, block: u32) -> usize {
        block as usize % self.chips.len()
    }

    fn is_new(&self, page: &Option<Page>) -> bool {
        page.is_some_and(|(lpn, version)| self.newest.get(&lpn) == Some(&version))
    }

    fn alive(&self, block: &Block) -> bool {
        block.iter().any(|page| self.is_new(page))
    }

    /// Returns the page at an offset of a logical block, if it has data.
    fn current(&self, block: u32, offset: u32) -> Option<Page> {
        let lpn = block * self.block_pages + offset;
        self.newest.get(&lpn).map(|&version| (lpn, version))
    }

    fn change(&mut self, lpn: u32) -> u32 {
        let version = self.changes.entry(lpn).or_insert(0);
        *version += 1;
        *version
    }

    pub fn prefill(&mut self) {
        for lpn in 0..self.lpns {
            let version = self.change(lpn);
            self.newest.insert(lpn, version);
            self.data.entry(lpn / self.block_pages).or_default().push(Some((lpn, version)));
        }
    }

    pub fn version(&self, lpn: u32) -> Option<u32> {
        self.newest.get(&lpn).copied()
    }

    pub fn trim(&mut self, first: u32, pages: u32) {
        for lpn in first..first + pages {
            self.change(lpn);
            self.newest.remove(&lpn);
        }
    }

    /// Extends a list of pages to the end of the block with copies; returns the number of copies. A copied page is dead
    /// in its old place: it gets version 0.
    fn fill(&mut self, block: u32, pages: &mut Block, end: u32) -> u64 {
        let mut copies = 0;
        for offset in pages.len() as u32..end {
            let page = self.current(block, offset);
            copies += u64::from(page.is_some());
            pages.push(page);
            let chip = self.chip(block);
            let Chip { pairs, random, sequential, .. } = &mut self.chips[chip];
            let owned = pairs.iter_mut().chain(sequential).map(|(_, log)| log);
            for copied in owned.chain(random).flatten().filter(|other| page.is_some() && **other == page) {
                copied.as_mut().unwrap().1 = 0;
            }
        }
        copies
    }

    fn becomes_data(&mut self, block: u32, pages: Block) {
        if self.data.insert(block, pages).is_some() {
            self.tally.erases += 1;
        }
    }

    fn count(&mut self, kind: usize, copies: u64) {
        self.tally.merges[kind].0 += 1;
        self.tally.merges[kind].1 += copies;
    }

    fn full_merge(&mut self, block: u32) {
        let mut pages = Vec::new();
        let copies = self.fill(block, &mut pages, self.block_pages);
        self.becomes_data(block, pages);
        self.count(FULL, copies);
    }

    /// Turns a log block that was written in order into the data block.
    fn keep_log(&mut self, block: u32, mut log: Block) {
        let whole = log.len() as u32 == self.block_pages;
        let copies = self.fill(block, &mut log, self.block_pages);
        self.becomes_data(block, log);
        self.count(if whole { SWITCH } else { PARTIAL }, copies);
    }

    fn in_order(&self, block: u32, log: &Block) -> bool {
        (0..).zip(log).all(|(offset, page)| page.unwrap().0 == block * self.block_pages + offset)
    }

    /// BAST: merges a block with its log block.
    fn merge_pair(&mut self, block: u32) {
        if self.under_way(block) {
            return self.complete(block);
        }
        let chip = self.chip(block);
        let at = self.chips[chip].pairs.iter().position(|(owner, _)| *owner == block).unwrap();
        let (_, log) = self.chips[chip].pairs.remove(at);
        if self.alive(&log) && self.in_order(block, &log) {
            return self.keep_log(block, log);
        }
        if self.alive(&log) {
            self.full_merge(block);
        }
        self.tally.erases += 1;
    }

    fn write_bast(&mut self, block: u32, page: Page) {
        let chip = self.chip(block);
        let own = self.chips[chip].pairs.iter().position(|(owner, _)| *owner == block);
        let mut pair = match own {
            Some(at) => self.chips[chip].pairs.remove(at),
            None => {
                if self.chips[chip].pairs.len() == self.chips[chip].limit {
                    self.merge_pair(self.chips[chip].pairs[0].0);
                }
                (block, Vec::new())
            }
        };
        self.newest.insert(page.0, page.1);
        pair.1.push(Some(page));
        let full = pair.1.len() as u32 == self.block_pages;
        self.chips[chip].pairs.push(pair);
        if full {
            self.merge_pair(block);
        }
    }

    /// FAST: reclaims the SW log block.
    fn merge_sequential(&mut self, chip: usize) {
        let owner = self.chips[chip].sequential.as_ref().unwrap().0;
        if self.under_way(owner) {
            return self.complete(owner);
        }
        let (block, log) = self.chips[chip].sequential.take().unwrap();
        if self.alive(&log) {
            self.keep_log(block, log);
        } else {
            self.tally.erases += 1;
        }
    }

    /// FAST: reclaims the oldest RW log block.
    fn reclaim(&mut self, chip: usize) {
        let victim = self.chips[chip].random.remove(0);
        // Blocks are merged in the order of their first pages in the victim.
        let mut blocks: Vec<u32> = Vec::new();
        for page in victim.iter().filter(|page| self.is_new(page)) {
            let block = page.unwrap().0 / self.block_pages;
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        for block in blocks {
            let owns = self.chips[chip].sequential.as_ref().is_some_and(|(owner, _)| *owner == block);
            if self.under_way(block) {
                self.complete(block);
            } else if !owns {
                self.full_merge(block);
            } else {
                let (_, log) = self.chips[chip].sequential.as_ref().unwrap();
                let newer = |page: &Page| self.newest.get(&page.0).is_some_and(|&newest| newest != page.1);
                if log.iter().flatten().any(newer) {
                    self.chips[chip].sequential = None;
                    self.full_merge(block);
                    self.tally.erases += 1;
                } else if self.alive(log) {
                    self.merge_sequential(chip);
                } else {
                    self.merge_sequential(chip);
                    self.full_merge(block);
                }
            }
        }
        self.tally.erases += 1;
    }

    fn write_fast(&mut self, block: u32, page: Page, sequential: bool) {
        let chip = self.chip(block);
        if sequential {
            self.newest.insert(page.0, page.1);
            let log = &mut self.chips[chip].sequential.as_mut().unwrap().1;
            log.push(Some(page));
            if log.len() as u32 == self.block_pages {
                self.merge_sequential(chip);
            }
            return;
        }
        let full = |log: &Block| log.len() as u32 == self.block_pages;
        if self.chips[chip].random.last().is_none_or(full) {
            if self.chips[chip].random.len() == self.chips[chip].limit {
                self.reclaim(chip);
            }
            self.chips[chip].random.push(Vec::new());
        }
        self.newest.insert(page.0, page.1);
        self.chips[chip].random.last_mut().unwrap().push(Some(page));
    }

    /// FAST: returns whether a request within a block that begins here is sequential; reclaims the SW log block if the
    /// request begins another one.
    fn begins_sequential(&mut self, first: u32) -> bool {
        let (block, offset) = (first / self.block_pages, first % self.block_pages);
        let chip = self.chip(block);
        if offset == 0 {
            if self.chips[chip].sequential.is_some() {
                self.merge_sequential(chip);
            }
            self.chips[chip].sequential = Some((block, Vec::new()));
            return true;
        }
        let continues = |(owner, log): &(u32, Block)| *owner == block && log.len() as u32 == offset;
        self.chips[chip].sequential.as_ref().is_some_and(continues)
    }

    /// Writes a request; under cooperation nothing has to be guessed.
    pub fn write(&mut self, first: u32, pages: u32, coop: bool) {
        let mut sequential = None;
        for lpn in first..first + pages {
            let block = lpn / self.block_pages;
            if lpn % self.block_pages == 0 {
                sequential = None;
            }
            if self.under_way(block) {
                let mut log = self.cooperative.take().unwrap().1;
                let offset = lpn % self.block_pages;
                let behind = offset < log.len() as u32;
                if !behind {
                    self.tally.merges[COOPERATIVE].1 += self.fill(block, &mut log, offset);
                    let version = self.change(lpn);
                    self.newest.insert(lpn, version);
                    log.push(Some((lpn, version)));
                }
                self.cooperative = Some((block, log));
                if !behind {
                    continue;
                }
                self.complete(block);
            }
            let guess = match sequential {
                Some(guess) => guess,
                None => self.fast && !coop && self.begins_sequential(lpn),
            };
            sequential = Some(guess);
            // Until the page is programmed, a merge copies the previous version.
            let version = self.change(lpn);
            match self.fast {
                true => self.write_fast(block, (lpn, version), guess),
                false => self.write_bast(block, (lpn, version)),
            }
        }
    }

    fn under_way(&self, block: u32) -> bool {
        self.cooperative.as_ref().is_some_and(|(owner, _)| *owner == block)
    }

    pub fn issue(&mut self, block: u32) {
        if let Some((owner, _)) = self.cooperative {
            if owner == block {
                return;
            }
            self.complete(owner);
        }
        self.cooperative = Some((block, Vec::new()));
    }

    pub fn complete(&mut self, block: u32) {
        if !self.under_way(block) {
            return;
        }
        let (_, mut log) = self.cooperative.take().unwrap();
        let written = !log.is_empty() && log.iter().any(Option::is_some);
        let copies = self.fill(block, &mut log, self.block_pages);
        self.tally.merges[COOPERATIVE].1 += copies;
        if written || copies > 0 {
            self.becomes_data(block, log);
            self.tally.merges[COOPERATIVE].0 += 1;
        }
        let chip = self.chip(block);
        let before = self.chips[chip].pairs.len();
        self.chips[chip].pairs.retain(|(owner, _)| *owner != block);
        self.tally.erases += (before - self.chips[chip].pairs.len()) as u64;
        if self.chips[chip].sequential.as_ref().is_some_and(|(owner, _)| *owner == block) {
            self.chips[chip].sequential = None;
            self.tally.erases += 1;
        }
        let random = std::mem::take(&mut self.chips[chip].random);
        let (kept, empty): (Vec<_>, Vec<_>) = random.into_iter().partition(|log| self.alive(log));
        self.chips[chip].random = kept;
        self.tally.erases += empty.len() as u64;
    }

    /// Returns the answer to COOP_Query, according to Algorithms 3 and 4.
    pub fn query(&self, first: u32, pages: u32) -> Vec<u32> {
        let block = first / self.block_pages;
        let chip = &self.chips[self.chip(block)];
        if !self.fast {
            return match chip.pairs.iter().find(|(owner, _)| *owner == block) {
                Some((_, log)) => {
                    let free = self.block_pages - log.len() as u32;
                    let offset = first % self.block_pages;
                    let fits = pages == free && self.in_order(block, log) && log.len() as u32 == offset;
                    if pages < free || fits { vec![] } else { vec![block] }
                }
                None if chip.pairs.len() < chip.limit => vec![],
                None if self.alive(&chip.pairs[0].1) => vec![chip.pairs[0].0],
                None => vec![],
            };
        }
        if pages > self.threshold {
            return vec![block];
        }
        let b = self.block_pages as usize;
        let open = chip.random.last().map_or(0, |log| b - log.len());
        let free = (chip.limit - chip.random.len()) * b + open;
        let pages = pages as usize;
        if pages < free {
            return vec![];
        }
        let victims = if pages == free { 1 } else { (pages - free).div_ceil(b) };
        let valid = chip.random.iter().take(victims).flatten().filter(|page| self.is_new(page));
        let set: BTreeSet<u32> = valid.map(|page| page.unwrap().0 / self.block_pages).collect();
        set.into_iter().collect()
    }
}
