//! The speed that the machine's memory allows: the random loads and stores of case `page`, including its garbage
//! collection, without a model of time.
//!
//! Page map, reverse map and valid pages per block are arrays; victims are found in lists by number of valid
//! pages. Nothing is queued, and only programs are counted.

use std::hint::black_box;

use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Source};

use crate::{Uniform, cpu_seconds};

const NONE: u32 = u32::MAX;

/// One page-mapped device.
struct Device {
    pages_per_block: u32,
    /// Physical page of each logical page, and logical page of each physical page.
    page_of: Vec<u32>,
    owner: Vec<u32>,
    /// Number of valid pages of each block, and its neighbours in the list of blocks with the same number of valid
    /// pages.
    valid: Vec<u32>,
    links: Vec<[u32; 2]>,
    chips: Vec<Chip>,
    programs: u64,
}

/// One chip: its full blocks by number of valid pages, its erased blocks, and where it programs next.
struct Chip {
    full: Vec<u32>,
    erased: Vec<u32>,
    next: u32,
    end: u32,
}

impl Device {
    fn new(settings: &Settings) -> Device {
        let pages_per_block = settings.flash.pages_per_block;
        let pages = settings.flash.pages() as usize;
        let (blocks, chips) = (pages as u32 / pages_per_block, settings.flash.luns());
        let per_chip = blocks / chips;
        let chip = |chip| Chip {
            full: vec![NONE; pages_per_block as usize + 1],
            erased: (chip * per_chip..(chip + 1) * per_chip).rev().collect(),
            next: 0,
            end: 0,
        };
        Device {
            pages_per_block,
            page_of: vec![NONE; settings.user_pages() as usize],
            owner: vec![NONE; pages],
            valid: vec![0; blocks as usize],
            links: vec![[NONE; 2]; blocks as usize],
            chips: (0..chips).map(chip).collect(),
            programs: 0,
        }
    }

    fn write(&mut self, lpn: u32) {
        let chip = lpn as usize % self.chips.len();
        if self.chips[chip].next == self.chips[chip].end {
            self.open(chip);
        }
        let old = self.page_of[lpn as usize];
        if old != NONE {
            self.owner[old as usize] = NONE;
            let block = old / self.pages_per_block;
            let open = self.chips[chip].end / self.pages_per_block == block + 1;
            if open {
                self.valid[block as usize] -= 1;
            } else {
                self.unlink(chip, block);
                self.valid[block as usize] -= 1;
                self.link(chip, block);
            }
        }
        self.program(chip, lpn);
    }

    fn program(&mut self, chip: usize, lpn: u32) {
        let page = self.chips[chip].next;
        self.chips[chip].next += 1;
        self.page_of[lpn as usize] = page;
        self.owner[page as usize] = lpn;
        self.valid[(page / self.pages_per_block) as usize] += 1;
        self.programs += 1;
    }

    /// Opens an erased block; collects garbage until there is another erased block.
    fn open(&mut self, chip: usize) {
        self.begin_block(chip);
        while self.chips[chip].erased.is_empty() {
            let state = &self.chips[chip];
            let victim = *state.full.iter().find(|&&block| block != NONE).expect("some block is full");
            self.unlink(chip, victim);
            let first = victim * self.pages_per_block;
            for page in first..first + self.pages_per_block {
                let lpn = std::mem::replace(&mut self.owner[page as usize], NONE);
                if lpn == NONE {
                    continue;
                }
                if self.chips[chip].next == self.chips[chip].end {
                    self.begin_block(chip);
                }
                self.program(chip, lpn);
            }
            self.valid[victim as usize] = 0;
            self.chips[chip].erased.insert(0, victim);
        }
        if self.chips[chip].next == self.chips[chip].end {
            self.begin_block(chip);
        }
    }

    fn begin_block(&mut self, chip: usize) {
        let state = &mut self.chips[chip];
        let (full, block) = (state.end, state.erased.pop().expect("a block is kept for collection"));
        (state.next, state.end) = (block * self.pages_per_block, (block + 1) * self.pages_per_block);
        if full > 0 {
            self.link(chip, full / self.pages_per_block - 1);
        }
    }

    fn link(&mut self, chip: usize, block: u32) {
        let head = &mut self.chips[chip].full[self.valid[block as usize] as usize];
        let next = std::mem::replace(head, block);
        self.links[block as usize] = [NONE, next];
        if next != NONE {
            self.links[next as usize][0] = block;
        }
    }

    fn unlink(&mut self, chip: usize, block: u32) {
        let [before, next] = self.links[block as usize];
        match before {
            NONE => self.chips[chip].full[self.valid[block as usize] as usize] = next,
            before => self.links[before as usize][1] = next,
        }
        if next != NONE {
            self.links[next as usize][0] = before;
        }
    }
}

/// Runs the requests; returns the CPU seconds, including the fill, and the write amplification of the
/// requests.
pub fn limit(settings: &Settings, source: &mut Uniform) -> (f64, f64) {
    let began = cpu_seconds();
    let mut device = Device::new(settings);
    (0..device.page_of.len() as u32).for_each(|lpn| device.write(lpn));
    device.programs = 0;
    let mut writes = 0;
    while let Ok(Some(request)) = source.next() {
        let lpn = (request.offset / 4096) as u32;
        if request.op == Op::Write {
            device.write(lpn);
            writes += 1;
        } else {
            black_box(device.page_of[lpn as usize]);
        }
    }
    (cpu_seconds() - began, device.programs as f64 / f64::from(writes))
}
