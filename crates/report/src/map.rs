//! Unpacks the cells of a map frame, one byte per pageblock.
//!
//! Frames come from files, so every length is checked against the zones, and unpacking stops at
//! that length whatever the stream says.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::DeflateDecoder;
use kontig_results::{MapFrame, MemoryMap};
use std::fmt;
use std::io::Read;

/// Why a frame could not be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The cells are not base64.
    Base64,
    /// The decoded base64 is not raw DEFLATE, or unpacks to more cells than the zones have blocks.
    Deflate,
    /// Fewer cells than blocks.
    Length { cells: usize, blocks: usize },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Base64 => write!(f, "the map's cells are not base64"),
            MapError::Deflate => write!(f, "the map's cells do not unpack to one byte a pageblock"),
            MapError::Length { cells, blocks } => write!(f, "the map has {cells} cells for {blocks} pageblocks"),
        }
    }
}

impl std::error::Error for MapError {}

/// Number of pageblocks in every frame of `map`.
pub fn blocks(map: &MemoryMap) -> usize {
    map.zones.iter().map(|zone| zone.blocks as usize).sum()
}

/// The bytes of `frame`, one for each of `blocks` pageblocks.
///
/// # Errors
/// [`MapError`] if the cells do not unpack to exactly that many.
pub fn cells(frame: &MapFrame, blocks: usize) -> Result<Vec<u8>, MapError> {
    let packed = BASE64_STANDARD.decode(&frame.cells).map_err(|_| MapError::Base64)?;
    let mut cells = Vec::new();
    // One byte more than there should be shows that there are too many.
    let unpacked = DeflateDecoder::new(&*packed).take(blocks as u64 + 1).read_to_end(&mut cells);
    if unpacked.is_err() || cells.len() > blocks {
        return Err(MapError::Deflate);
    }
    if cells.len() == blocks { Ok(cells) } else { Err(MapError::Length { cells: cells.len(), blocks }) }
}
