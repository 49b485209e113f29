//! Writes a segment from front to end.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use super::layout::{Block, End, KEYS_PER_BLOCK, MAGIC, put_list};
use super::read::Segment;
use crate::index::entry::FileEntry;
use crate::index::numbers::put;

/// Writes a segment. If it is dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub(in crate::index) struct SegmentWriter {
    file: BufWriter<NamedTempFile>,
    hasher: blake3::Hasher,
    at: u64,
    files: usize,
    blocks_at: Option<u64>,
    outlines: Vec<u32>,
    blocks: Vec<Block>,
    block: Block,
    lists: Vec<u8>,
    keys: Vec<u8>,
    keys_in_block: usize,
    last_key: u64,
}

impl SegmentWriter {
    pub(in crate::index) fn new(directory: &Path, files: usize) -> io::Result<Self> {
        let file = tempfile::Builder::new().prefix("new-").tempfile_in(directory)?;
        let block = Block {
            first: 0,
            offset: 0,
            lists: 0,
            keys: 0,
        };
        let mut writer = Self {
            file: BufWriter::with_capacity(256 * 1024, file),
            hasher: blake3::Hasher::new(),
            at: 0,
            files,
            blocks_at: None,
            outlines: Vec::with_capacity(files),
            blocks: Vec::new(),
            block,
            lists: Vec::new(),
            keys: Vec::new(),
            keys_in_block: 0,
            last_key: 0,
        };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    /// Adds the outline of the next file, in the order of paths. All outlines come before the first key.
    pub(in crate::index) fn outline(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outlines.push(bytes.len() as u32);
        self.write(bytes)
    }

    /// Adds the next key, and the numbers of its files, in order. There is at least one, and no key comes twice.
    pub(in crate::index) fn key(&mut self, key: u64, list: &[u32]) -> io::Result<()> {
        if self.keys_in_block == KEYS_PER_BLOCK {
            self.end_block()?;
        }
        if self.keys_in_block == 0 {
            self.block.first = key;
            self.last_key = key;
        }
        put(&mut self.keys, key - self.last_key);
        put(&mut self.keys, list.len() as u64);
        if let [only] = list {
            put(&mut self.keys, (*only).into());
        } else {
            let from = self.lists.len();
            put_list(&mut self.lists, list, self.files);
            put(&mut self.keys, (self.lists.len() - from) as u64);
        }
        self.last_key = key;
        self.keys_in_block += 1;
        Ok(())
    }

    pub(in crate::index) fn finish(mut self, directory: &Path, files: &[FileEntry]) -> io::Result<Segment> {
        assert_eq!(
            (files.len(), self.outlines.len()),
            (self.files, self.files),
            "every file has its row"
        );
        self.end_block()?;
        let blocks_at = self.blocks_at.unwrap_or(self.at);
        let files_at = self.at;
        let mut table = Vec::new();
        let mut before = "";
        for (file, outline) in files.iter().zip(&self.outlines) {
            file.put(&mut table, before);
            put(&mut table, (*outline).into());
            before = file.path.as_str();
        }
        self.write(&table)?;
        table.clear();
        let end = End {
            blocks_at,
            files_at,
            files: files.len() as u64,
            table_at: self.at,
            blocks: self.blocks.len() as u64,
        };
        self.blocks.iter().for_each(|block| block.put(&mut table));
        end.put(&mut table);
        self.write(&table)?;
        let hash = self.hasher.finalize();
        self.file.write_all(hash.as_bytes())?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_data()?;
        let name = format!("{}.segment", &hash.to_hex().as_str()[..32]);
        let path = directory.join(&name);
        file.persist(&path).map_err(|error| error.error)?;
        Segment::open_unchecked(&path, name)
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.blocks_at.is_none() {
            self.blocks_at = Some(self.at);
        }
        if self.keys_in_block == 0 {
            return Ok(());
        }
        self.block.offset = self.at;
        self.block.lists = self.lists.len() as u32;
        self.block.keys = self.keys.len() as u32;
        self.blocks.push(self.block);
        let (lists, keys) = (std::mem::take(&mut self.lists), std::mem::take(&mut self.keys));
        self.write(&lists)?;
        self.write(&keys)?;
        (self.lists, self.keys) = (lists, keys);
        self.lists.clear();
        self.keys.clear();
        self.keys_in_block = 0;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}
