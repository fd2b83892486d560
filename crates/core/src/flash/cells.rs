//! How long cells take to read, program or erase, which may depend on the page's type and on the block.
//!
//! Layers above name pages, never times. If all pages are equally fast (`are_alike`), callers need not say which page
//! they mean.
//!
//! Source: the types of a word line's pages and the order of two-pass programming are those of NAND with several bits a
//! cell (Cai et al., "Error Characterization, Mitigation, and Recovery in Flash-Memory-Based Solid-State Drives",
//! Proc. IEEE 2017, sections 2.3 and 2.4). What was read into it is in `docs/readings/cells.md`.

use super::Flash;
use super::settings::{PageOrder, Programming};
use super::variation::Speeds;
use crate::config::{Contradiction, Ignored, PageTimes, times};
use crate::util::{Bits, Divider, NONE};

/// The cells of a device.
#[derive(Clone, Debug)]
pub struct Cells {
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    by_block: Divider,
    /// What differs between pages, if anything does.
    types: Option<Box<Types>>,
    /// How fast each block is, if the blocks differ in speed.
    speeds: Option<Speeds>,
    /// Pages that were programmed before times last changed, by the time that each took, ns.
    before: Vec<(u64, u64)>,
}

/// The page types of a block.
#[derive(Clone, Debug)]
struct Types {
    /// Type of each page of a block.
    of_page: Vec<u8>,
    reads: PageTimes,
    programs: PageTimes,
    /// Number of pages programmed, by type.
    programmed: Vec<u64>,
    /// The blocks that are used with one bit a cell, if any may be.
    slc: Option<Slc>,
}

/// Blocks that are used with one bit a cell.
#[derive(Clone, Debug)]
struct Slc {
    blocks: Bits,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    /// Number of pages programmed there.
    programmed: u64,
}

impl Slc {
    /// Makes the times of `flash`; no block is used with one bit a cell yet.
    fn new(flash: &Flash) -> Slc {
        Slc {
            blocks: Bits::new((flash.pages() / u64::from(flash.pages_per_block)) as usize),
            read_ns: flash.slc_read_ns.unwrap_or(flash.read.of_type(0)),
            program_ns: flash.slc_program_ns.unwrap_or(flash.program.of_type(0)),
            erase_ns: flash.slc_erase_ns.unwrap_or(flash.erase_ns),
            programmed: 0,
        }
    }
}

impl Slc {
    /// Makes cells take `factor` times as long as the settings of `flash` say.
    fn slow(&mut self, flash: &Flash, factor: f64) {
        let Slc { read_ns, program_ns, erase_ns, .. } = Slc::new(flash);
        (self.read_ns, self.program_ns) = (times(read_ns, factor), times(program_ns, factor));
        self.erase_ns = times(erase_ns, factor);
    }
}

/// The time of programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Programs {
    /// Cell time of all of them, ns.
    pub cell_ns: u64,
    /// Whether the block is used with one bit a cell, so that one page is programmed at once.
    pub slc: bool,
}

impl Types {
    /// Returns the type of the page with this number in its block.
    fn of_page(&self, offset: u32) -> usize {
        usize::from(self.of_page[offset as usize])
    }

    /// Returns the times of a block's pages if it is used with one bit a cell.
    fn slc_of(&mut self, block: u32) -> Option<&mut Slc> {
        self.slc.as_mut().filter(|slc| slc.blocks.get(block))
    }
}

/// Returns the page type of each page of a block, in the order of programming.
pub(super) fn types(flash: &Flash) -> Vec<u8> {
    let bits = flash.cell.bits();
    let pages = 0..flash.pages_per_block;
    if flash.page_order == PageOrder::WordLine || flash.programming == Programming::WordLine {
        return pages.map(|page| (page % bits) as u8).collect();
    }
    // The lower pages run ahead: page type t of word line w comes in turn w + t, the lowest type first.
    let lines = flash.pages_per_block.div_ceil(bits);
    let exists = |line: u32, of_type: u32| line < lines && line * bits + of_type < flash.pages_per_block;
    (0..lines + bits)
        .flat_map(|turn| (0..bits.min(turn + 1)).map(move |of_type| (turn - of_type, of_type)))
        .filter(|&(line, of_type)| exists(line, of_type))
        .map(|(_, of_type)| of_type as u8)
        .collect()
}

/// Checks that the times and the geometry fit the cells.
pub(crate) fn check(flash: &Flash) -> Result<(), Contradiction> {
    let fail = |key, message| Err(Contradiction { key, message });
    let (bits, cell) = (flash.cell.bits(), flash.cell.name());
    for (key, times) in [("flash.read", &flash.read), ("flash.program", &flash.program)] {
        let stated = times.stated().len();
        if stated > 1 && stated != bits as usize {
            let message = format!(
                "{times}: {stated} times for the {bits} page types of flash.cell = \"{cell}\"; \
                 give one time, or {bits}"
            );
            return fail(key, message);
        }
    }
    if flash.unit_pages() == 1 {
        return Ok(());
    }
    if !flash.pages_per_block.is_multiple_of(bits) {
        let message = format!(
            "{} is not a multiple of the {bits} pages of a word line (flash.cell, flash.programming)",
            flash.pages_per_block
        );
        return fail("flash.pages_per_block", message);
    }
    if flash.program.stated().len() > 1 {
        let message =
            "a word line is programmed at once (flash.programming), in one time: give one".to_owned();
        return fail("flash.program", message);
    }
    Ok(())
}

/// Collects the keys that have no effect with the chosen cells.
pub(crate) fn ignored(flash: &Flash, found: &mut Ignored) {
    let several = flash.cell.bits() > 1;
    let keys = ["flash.page_order", "flash.programming"];
    found.unless(several, &keys, "a word line of flash.cell = \"slc\" has one page");
    let whole = flash.unit_pages() > 1;
    found.unless(
        !whole,
        &["flash.page_order"],
        "flash.programming = \"word-line\" programs all pages at once",
    );
}

impl Cells {
    /// Makes the cells of `flash`, with every block already erased `flash.pe_cycles` times; `seed` seeds the random
    /// numbers. If `slc` is true, blocks may be used with one bit a cell.
    pub(super) fn new(flash: &Flash, seed: u64, slc: bool) -> Cells {
        let differ = slc || !flash.read.are_alike() || !flash.program.are_alike();
        Cells {
            read_ns: flash.read.of_type(0),
            program_ns: flash.program.of_type(0),
            erase_ns: flash.erase_ns,
            by_block: Divider::new(flash.pages_per_block),
            types: differ.then(|| {
                Box::new(Types {
                    of_page: types(flash),
                    reads: flash.read,
                    programs: flash.program,
                    programmed: vec![0; flash.cell.bits() as usize],
                    slc: slc.then(|| Slc::new(flash)),
                })
            }),
            speeds: Speeds::new(flash, seed, flash.pe_cycles as u32),
            before: Vec::new(),
        }
    }

    /// Makes cells take `factor` times as long as the settings of `flash` say; `total` is the number of all pages
    /// programmed so far.
    pub(super) fn slow(&mut self, flash: &Flash, factor: f64, total: u64) {
        let before = self.programs(total);
        self.reset_counts();
        self.before = before.into_iter().filter(|&(_, pages)| pages > 0).collect();
        self.read_ns = times(flash.read.of_type(0), factor);
        self.program_ns = times(flash.program.of_type(0), factor);
        self.erase_ns = times(flash.erase_ns, factor);
        if let Some(types) = &mut self.types {
            (types.reads, types.programs) = (flash.read.times(factor), flash.program.times(factor));
            if let Some(slc) = &mut types.slc {
                slc.slow(flash, factor);
            }
        }
        if let Some(speeds) = &mut self.speeds {
            speeds.slow(flash, factor);
        }
    }

    /// Whether operations of one kind all take the same time, whichever page they are for.
    #[inline]
    pub(super) fn are_alike(&self) -> bool {
        self.types.is_none() && self.speeds.is_none()
    }

    /// Returns each time that a program can take, ns, with the number of pages programmed in that time; `total` is the
    /// number of all pages programmed.
    pub fn programs(&self, total: u64) -> Vec<(u64, u64)> {
        let mut programs: Vec<(u64, u64)> = match (&self.speeds, &self.types) {
            (Some(speeds), _) => speeds.programs().collect(),
            (None, Some(types)) => {
                (0..).zip(&types.programmed).map(|(at, &pages)| (types.programs.of_type(at), pages)).collect()
            }
            (None, None) => {
                let before: u64 = self.before.iter().map(|&(_, pages)| pages).sum();
                vec![(self.program_ns, total - before)]
            }
        };
        let slc = self.types.iter().filter_map(|types| types.slc.as_ref());
        programs.extend(slc.map(|slc| (slc.program_ns, slc.programmed)));
        programs.extend(&self.before);
        programs
    }

    /// Uses the erased block with this page with one bit a cell, until it is erased.
    pub(super) fn use_as_slc(&mut self, page: u32) {
        let slc = self.types.as_mut().and_then(|types| types.slc.as_mut()).expect("blocks may be so used");
        slc.blocks.set(self.by_block.div(page));
    }

    /// Returns how fast the blocks are, if they differ in speed.
    pub fn speeds(&self) -> Option<&Speeds> {
        self.speeds.as_ref()
    }

    /// Whether pages differ by type.
    pub(super) fn have_types(&self) -> bool {
        self.types.is_some()
    }

    /// Returns the time to read a page, ns, where pages do not differ by type.
    #[inline]
    pub(super) fn read_ns_of_all(&self) -> u64 {
        self.read_ns
    }

    /// Returns the time to read a page, ns. A page that is not known ([`NONE`]) is of the lowest type.
    pub(super) fn read_ns(&self, page: u32) -> u64 {
        let Some(types) = &self.types else { return self.read_ns };
        let (block, offset) =
            if page == NONE { (NONE, 0) } else { (self.by_block.div(page), self.by_block.rem(page)) };
        if let Some(slc) = types.slc.as_ref().filter(|slc| block != NONE && slc.blocks.get(block)) {
            return slc.read_ns;
        }
        types.reads.of_type(types.of_page(offset))
    }

    /// Counts `count` programs, each of a page or, if whole word lines are programmed, of the `of` pages of one;
    /// `first` is the first of these consecutive pages of a block. Returns the time that the programs take in total.
    pub(super) fn program(&mut self, first: u32, count: u32, of: u32) -> Programs {
        if self.types.is_some() {
            return self.programs_of_types(first, count, of);
        }
        Programs { cell_ns: u64::from(count) * self.program_alike(first, count * of), slc: false }
    }

    /// Counts a program where pages do not differ by type, as `pages` pages of the block with the page `first`; returns
    /// the time that it takes, ns.
    #[inline(always)] // called for every write
    pub(super) fn program_alike(&mut self, first: u32, pages: u32) -> u64 {
        match &mut self.speeds {
            None => self.program_ns,
            Some(speeds) => speeds.program(self.by_block.div(first), 0, pages),
        }
    }

    /// Counts programs where pages differ by type. A word line, which has one program time, counts for its first page.
    fn programs_of_types(&mut self, first: u32, count: u32, of: u32) -> Programs {
        let Cells { types: Some(types), speeds, by_block, .. } = self else { unreachable!("types differ") };
        if let Some(slc) = types.slc_of(if first == NONE { 0 } else { by_block.div(first) }) {
            slc.programmed += u64::from(count);
            return Programs { cell_ns: u64::from(count) * slc.program_ns, slc: true };
        }
        let one = |at| {
            let page = first + at * of;
            let of_type = types.of_page(by_block.rem(page));
            types.programmed[of_type] += u64::from(of);
            match speeds {
                None => types.programs.of_type(of_type),
                Some(speeds) => speeds.program(by_block.div(page), of_type, of),
            }
        };
        Programs { cell_ns: (0..count).map(one).sum(), slc: false }
    }

    /// Counts an erasure of the block whose first page is `first`, which may slow the block down; returns the
    /// time that the erasure takes, ns. From now on the block is used with all its bits.
    #[inline]
    pub(super) fn erase_ns(&mut self, first: u32) -> u64 {
        if let Some(speeds) = &mut self.speeds {
            speeds.erase(self.by_block.div(first));
        }
        match &mut self.types {
            None => self.erase_ns,
            Some(types) => {
                let (block, all_ns) = (self.by_block.div(first), self.erase_ns);
                types.slc_of(block).map_or(all_ns, |slc| {
                    slc.blocks.clear(block);
                    slc.erase_ns
                })
            }
        }
    }

    /// Sets the erase count of each block, in block order, to the number of its erasures before this
    /// [`super::Work`] was made.
    pub(super) fn set_erases(&mut self, erases: impl Iterator<Item = u32>) {
        if let Some(speeds) = &mut self.speeds {
            (0..).zip(erases).for_each(|(block, erases)| speeds.set_erases(block, erases));
        }
    }

    /// Sets the counts of programmed pages back to 0.
    pub(super) fn reset_counts(&mut self) {
        self.before.clear();
        if let Some(types) = &mut self.types {
            types.programmed.fill(0);
            types.slc.iter_mut().for_each(|slc| slc.programmed = 0);
        }
        if let Some(speeds) = &mut self.speeds {
            speeds.reset_counts();
        }
    }
}
