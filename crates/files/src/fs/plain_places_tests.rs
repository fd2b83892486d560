//! Where mke2fs puts the parts of a file system: the places that the plain model uses.

/// Where mke2fs puts the parts of a file system on a device of up to 8 GiB, as block numbers.
#[derive(Clone)]
pub struct Places {
    pub groups: u32,
    pub block_bitmaps: u32,
    pub inode_bitmaps: u32,
    pub inode_tables: u32,
    pub inodes_per_group: u32,
    pub journal: u32,
    pub journal_blocks: u32,
    pub data: u32,
}

pub const GROUP: u32 = 128 << 20 >> 12;

impl Places {
    /// Places the parts in this order: superblock, group descriptors of 32 B, the groups' bitmaps, their inode tables
    /// (an inode of 256 B for every 16 KiB), the journal, data.
    pub fn of(blocks: u32, journal_blocks: u32) -> Places {
        let groups = blocks.div_ceil(GROUP);
        let descriptors = (groups * 32).div_ceil(4096);
        let inodes_per_group = (blocks / 4).div_ceil(groups).div_ceil(16) * 16;
        let block_bitmaps = 1 + descriptors;
        let inode_bitmaps = block_bitmaps + groups;
        let inode_tables = inode_bitmaps + groups;
        let journal = inode_tables + groups * inodes_per_group * 256 / 4096;
        let data = journal + journal_blocks;
        Places {
            groups,
            block_bitmaps,
            inode_bitmaps,
            inode_tables,
            inodes_per_group,
            journal,
            journal_blocks,
            data,
        }
    }
}
