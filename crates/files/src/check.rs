//! Check mode above the device: what clients wrote, compared with what the device's pages resolve to.
//!
//! Every write of a page gives it a new token. A write carries the token that its page had when the write was
//! submitted; when the write completes, its block holds that token, and the version of the block's logical page is
//! noted. After an fsync every page of the file that was not written meanwhile must be on the device with its newest
//! token, and a read must deliver the newest token.

use super::bios::Bio;
use crate::cache::PAGE;
use crate::fs::Fs;
use ftlab_core::host::VersionOf;
use ftlab_core::request::Paging;
use ftlab_core::util::NONE;
use ftlab_core::workload::Op;

/// What is known about a block on the device.
#[derive(Clone, Copy, Debug, Default)]
struct Landed {
    token: u64,
    /// Version that the block's logical page had when the write landed.
    version: u32,
}

#[derive(Clone, Copy, Debug)]
enum Promise {
    /// An fsync of a file has returned: all its pages with tokens up to `mark` must be on the device.
    Synced { inode: u32, mark: u64 },
    /// Pages of a file were requested from the device, which must then hold their newest content.
    Read { inode: u32, index: u32, pages: u32 },
}

/// The model of what the device must hold.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Newest token of each page of each file; 0: never written.
    tokens: Vec<Vec<u64>>,
    blocks: Vec<Landed>,
    last: u64,
    promises: Vec<Promise>,
    paging: Paging,
}

impl Check {
    /// Makes the model of a device of this many blocks.
    pub(super) fn new(blocks: u64, paging: Paging) -> Check {
        let blocks = vec![Landed::default(); blocks as usize];
        Check { tokens: Vec::new(), blocks, last: 0, promises: Vec::new(), paging }
    }

    /// Returns the logical page of a block.
    fn lpn(&self, block: u64) -> u32 {
        self.paging.pages(Op::Write, block * PAGE, block * PAGE + 1).first
    }

    /// Returns the newest token that has been given out.
    pub(super) fn mark(&self) -> u64 {
        self.last
    }

    /// Notes that a client wrote a page.
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

    /// Notes that a file was deleted or emptied.
    pub(super) fn gone(&mut self, inode: u32) {
        if let Some(tokens) = self.tokens.get_mut(inode as usize) {
            tokens.clear();
        }
        self.promises.retain(|promise| match *promise {
            Promise::Synced { inode: of, .. } | Promise::Read { inode: of, .. } => of != inode,
        });
    }

    /// Returns the newest token of a page.
    pub(super) fn token(&self, inode: u32, index: u32) -> u64 {
        self.tokens.get(inode as usize).and_then(|tokens| tokens.get(index as usize)).copied().unwrap_or(0)
    }

    /// Notes that an fsync has returned; `mark` was the newest token when it began.
    pub(super) fn synced(&mut self, inode: u32, mark: u64) {
        self.promises.push(Promise::Synced { inode, mark });
    }

    /// Notes that pages are requested from the device.
    pub(super) fn reads(&mut self, inode: u32, index: u32, pages: u32) {
        self.promises.push(Promise::Read { inode, index, pages });
    }

    /// Notes that a block I/O has reached the device.
    pub(super) fn landed(&mut self, bio: &Bio, version: VersionOf) {
        let token = match bio.op {
            Op::Write => bio.token,
            Op::Trim => 0,
            Op::Read | Op::Flush => return,
        };
        for block in bio.offset / PAGE..(bio.offset + bio.size).div_ceil(PAGE) {
            self.blocks[block as usize] = Landed { token, version: version(self.lpn(block)).unwrap_or(0) };
        }
    }

    /// Checks what was promised since the last call.
    pub(super) fn verify(&mut self, fs: &Fs, version: VersionOf) -> Result<(), String> {
        let promises = std::mem::take(&mut self.promises);
        promises.iter().try_for_each(|promise| match *promise {
            Promise::Synced { inode, mark } => {
                let pages = self.tokens.get(inode as usize).map_or(0, Vec::len) as u32;
                (0..pages)
                    .try_for_each(|index| self.page([inode, index], mark, fs, version, "after its fsync"))
            }
            // A page that had to be read was not in the cache, so its newest content must be on the device.
            Promise::Read { inode, index, pages } => (index..index + pages)
                .try_for_each(|index| self.page([inode, index], u64::MAX, fs, version, "read")),
        })
    }

    /// Checks a page for which everything written up to `mark` was promised.
    fn page(
        &self,
        [inode, index]: [u32; 2],
        mark: u64,
        fs: &Fs,
        version: VersionOf,
        what: &str,
    ) -> Result<(), String> {
        let token = self.token(inode, index);
        // What was written after the fsync began is promised only by the next fsync.
        if token == 0 || token > mark {
            return Ok(());
        }
        let block = fs.inode(inode).block(index);
        let fail =
            |fault: String| Err(format!("page {index} of file {inode} in block {block}, {what}: {fault}"));
        if block == NONE {
            return fail("it has no block".into());
        }
        let landed = self.blocks[block as usize];
        if landed.token != token {
            return fail(format!("the device holds write {}, newest {token}", landed.token));
        }
        let lpn = self.lpn(u64::from(block));
        match version(lpn) {
            Some(found) if found >= landed.version => Ok(()),
            found => fail(format!("LPN {lpn} resolves to version {found:?}, was {}", landed.version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bios::For;
    use super::*;
    use crate::fs::Mkfs;

    /// The check detects that a page's write was lost, that it was stale, or that the device returns an older version.
    #[test]
    fn lost_and_stale_pages_are_found() {
        let mut fs = Fs::new(Some(Mkfs { journal_bytes: None }), 16_384, 1);
        let inode = fs.create(0, 0).unwrap();
        let block = u64::from(fs.allocate(inode, 0, PAGE, 0).unwrap());
        let mut check = Check::new(16_384, Paging::new(4096));
        check.wrote(inode, 0);
        let bio = |op, token| {
            let (offset, purpose) = (block * PAGE, For::Commit);
            Bio { op, offset, size: PAGE, submitted_ns: 0, purpose, token, next: NONE, waits: 0 }
        };
        let one = |_| Some(1);
        check.synced(inode, check.mark());
        let lost = check.verify(&fs, &one).unwrap_err();
        assert!(lost.ends_with("after its fsync: the device holds write 0, newest 1"), "{lost}");
        check.landed(&bio(Op::Write, 1), &one);
        check.synced(inode, check.mark());
        assert_eq!(check.verify(&fs, &one), Ok(()));
        check.wrote(inode, 0);
        check.reads(inode, 0, 1);
        let stale = check.verify(&fs, &one).unwrap_err();
        assert!(stale.ends_with("read: the device holds write 1, newest 2"), "{stale}");
        check.landed(&bio(Op::Write, 2), &|_| Some(2));
        check.synced(inode, check.mark());
        let older = check.verify(&fs, &one).unwrap_err();
        assert!(older.contains("resolves to version Some(1), was 2"), "{older}");
        check.synced(inode, check.mark());
        check.landed(&bio(Op::Trim, 0), &|_| Some(3));
        assert!(check.verify(&fs, &|_| Some(3)).is_err(), "discarded while the file has it");
    }
}
