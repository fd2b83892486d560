//! Where the parts of a file system are on its device.

/// Bytes of a block; a page of the page cache has the same size.
pub const BLOCK: u64 = 4096;
pub(super) const GROUP: u32 = 32_768;
pub(super) const INODES_PER_BLOCK: u32 = 16;

/// How to make a file system.
#[derive(Clone, Copy, Debug)]
pub struct Mkfs {
    /// Bytes of the journal; if `None`, the size of the device determines them.
    pub journal_bytes: Option<u64>,
}

impl Mkfs {
    /// Returns the number of bytes left for data on a device of `user_bytes`.
    pub fn data_bytes(self, user_bytes: u64) -> u64 {
        let blocks = (user_bytes / BLOCK).min(u64::from(u32::MAX)) as u32;
        u64::from(blocks.saturating_sub(Layout::new(self, blocks).data)) * BLOCK
    }
}

/// Where the parts of a file system are, in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub groups: u32,
    /// First block bitmap; the bitmaps follow the superblock and the group descriptors.
    pub bitmaps: u32,
    pub inode_tables: u32,
    pub inodes_per_group: u32,
    pub journal: u32,
    pub journal_len: u32,
    /// First block for data.
    pub data: u32,
}

impl Layout {
    pub fn new(made: Mkfs, blocks: u32) -> Layout {
        let groups = blocks.div_ceil(GROUP).max(1);
        let bitmaps = 1 + (groups * 32).div_ceil(BLOCK as u32);
        let inode_tables = bitmaps + 2 * groups;
        // One inode for every four blocks.
        let inodes_per_group = (blocks / 4).div_ceil(groups).next_multiple_of(INODES_PER_BLOCK);
        let journal = inode_tables + groups * (inodes_per_group / INODES_PER_BLOCK);
        let auto = match blocks {
            0..32_768 => 1024,
            32_768..262_144 => 4096,
            262_144..524_288 => 8192,
            524_288..4_194_304 => 16_384,
            _ => 32_768,
        };
        let journal_len = made.journal_bytes.map_or(auto.min(blocks / 8), |bytes| (bytes / BLOCK) as u32);
        let data = journal.saturating_add(journal_len);
        Layout { groups, bitmaps, inode_tables, inodes_per_group, journal, journal_len, data }
    }

    /// Returns the layout of a device without a file system, on which all blocks are for data.
    pub fn raw() -> Layout {
        Layout {
            groups: 1,
            bitmaps: 0,
            inode_tables: 0,
            inodes_per_group: 1 << 20,
            journal: 0,
            journal_len: 0,
            data: 0,
        }
    }
}
