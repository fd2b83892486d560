//! Check mode above the device: what clients wrote against what the device's pages resolve to.
//!
//! Every write of a page gives it a new token. A page's token at its submission is what the write brings
//! to its block; when that write completes, block and logical page hold it. After an fsync every page of
//! the file must be on the device with its token of then or a newer one, and a read must deliver the
//! newest.

use crate::cache::{PAGE, PageCache};
use crate::config::Settings;
use crate::fs::Fs;
use crate::sim::arrivals::Paging;
use crate::util::NONE;
use crate::workload::Op;

/// What is known of a block on the device.
#[derive(Clone, Copy, Debug, Default)]
struct Landed {
    token: u64,
    /// Version of its logical page when it landed.
    version: u32,
}

#[derive(Clone, Copy, Debug)]
enum Promise {
    /// All pages of a file, with the tokens of then.
    Synced { inode: u32, mark: u64 },
    /// Pages of a file were asked of the device.
    Read { inode: u32, index: u32, pages: u32 },
}

/// The model.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Newest token of each page of each file; 0: never written.
    tokens: Vec<Vec<u64>>,
    blocks: Vec<Landed>,
    last: u64,
    promises: Vec<Promise>,
}

impl Check {
    pub(super) fn new(settings: &Settings) -> Check {
        let blocks = (settings.user_bytes() / PAGE) as usize;
        Check { tokens: Vec::new(), blocks: vec![Landed::default(); blocks], last: 0, promises: Vec::new() }
    }

    /// Tokens up to this have been given.
    pub(super) fn mark(&self) -> u64 {
        self.last
    }

    /// A client wrote a page.
    pub(super) fn wrote(&mut self, inode: u32, index: u32) {
        let (inode, index) = (inode as usize, index as usize);
        if self.tokens.len() <= inode {
            self.tokens.resize(inode + 1, Vec::new());
        }
        if self.tokens[inode].len() <= index {
            self.tokens[inode].resize(index + 1, 0);
        }
        self.last += 1;
        self.tokens[inode][index] = self.last;
    }

    /// A file was deleted or emptied.
    pub(super) fn gone(&mut self, inode: u32) {
        if let Some(tokens) = self.tokens.get_mut(inode as usize) {
            tokens.clear();
        }
        self.promises.retain(|promise| match *promise {
            Promise::Synced { inode: of, .. } | Promise::Read { inode: of, .. } => of != inode,
        });
    }

    /// Newest token of a page.
    pub(super) fn token(&self, inode: u32, index: u32) -> u64 {
        self.tokens.get(inode as usize).and_then(|tokens| tokens.get(index as usize)).copied().unwrap_or(0)
    }

    /// An fsync that began at `mark` has returned.
    pub(super) fn synced(&mut self, inode: u32, mark: u64) {
        self.promises.push(Promise::Synced { inode, mark });
    }

    /// Pages are asked of the device.
    pub(super) fn reads(&mut self, inode: u32, index: u32, pages: u32) {
        self.promises.push(Promise::Read { inode, index, pages });
    }

    /// A block I/O reached the device.
    pub(super) fn landed(
        &mut self,
        op: Op,
        offset: u64,
        size: u64,
        token: u64,
        paging: Paging,
        version: &dyn Fn(u32) -> Option<u32>,
    ) {
        if !matches!(op, Op::Write | Op::Trim) {
            return;
        }
        for block in offset / PAGE..(offset + size).div_ceil(PAGE) {
            let lpn = paging.pages(Op::Write, block * PAGE, block * PAGE + 1).first;
            let token = if op == Op::Trim { 0 } else { token };
            self.blocks[block as usize] = Landed { token, version: version(lpn).unwrap_or(0) };
        }
    }

    /// Sees to what was promised since the last call.
    pub(super) fn verify(
        &mut self,
        fs: &Fs,
        cache: &PageCache,
        paging: Paging,
        version: &dyn Fn(u32) -> Option<u32>,
    ) -> Result<(), String> {
        let mut promises = std::mem::take(&mut self.promises);
        let mut outcome = Ok(());
        for promise in promises.drain(..) {
            let (inode, pages, mark, what) = match promise {
                Promise::Synced { inode, mark } => {
                    let pages = self.tokens.get(inode as usize).map_or(0, Vec::len) as u32;
                    (inode, 0..pages, mark, "after its fsync")
                }
                // A page being read has no newer content than the device.
                Promise::Read { inode, index, pages } => (inode, index..index + pages, u64::MAX, "read"),
            };
            for index in pages {
                if outcome.is_ok() {
                    outcome = self.page(inode, index, mark, fs, paging, version, what);
                }
            }
        }
        self.promises = promises;
        debug_assert!(cache.cached() < NONE);
        outcome
    }

    #[allow(clippy::too_many_arguments)] // one page in its context
    fn page(
        &self,
        inode: u32,
        index: u32,
        mark: u64,
        fs: &Fs,
        paging: Paging,
        version: &dyn Fn(u32) -> Option<u32>,
        what: &str,
    ) -> Result<(), String> {
        let token = self.token(inode, index);
        if token == 0 {
            return Ok(());
        }
        let block = fs.inode(inode).block(index);
        let page = || format!("page {index} of file {inode} in block {block}, {what}");
        if block == NONE {
            return Err(format!("{}: it has no block", page()));
        }
        let landed = self.blocks[block as usize];
        let enough = if token <= mark { landed.token == token } else { landed.token != 0 };
        if !enough {
            return Err(format!("{}: the device holds write {}, newest {token}", page(), landed.token));
        }
        let lpn = paging.pages(Op::Write, u64::from(block) * PAGE, u64::from(block) * PAGE + 1).first;
        match version(lpn) {
            Some(found) if found >= landed.version => Ok(()),
            found => Err(format!("{}: LPN {lpn} resolves to version {found:?}, was {}", page(), landed.version)),
        }
    }
}
