//! The names of files, and the file of each.
//!
//! Workloads number their files in a row, and there may be millions: the numbers lie in pieces,
//! which are few enough to be found in the cache.

use kontig_program::FileName;
use std::collections::BTreeMap;

/// Numbers in a piece.
const PIECE: u64 = 256;
const NIL: u32 = u32::MAX;

/// All names of a machine.
#[derive(Clone, Default)]
pub(super) struct Names(BTreeMap<(u8, u64), Piece>);

#[derive(Clone)]
struct Piece {
    files: Box<[u32; PIECE as usize]>,
    count: usize,
}

/// The piece of a name, and its place there.
#[inline(always)]
fn place(name: FileName) -> ((u8, u64), usize) {
    ((name.disk(), name.number() / PIECE), (name.number() % PIECE) as usize)
}

impl Names {
    /// The file of this name.
    #[inline(always)]
    pub(super) fn get(&self, name: FileName) -> Option<u32> {
        let (piece, at) = place(name);
        self.0.get(&piece).map(|piece| piece.files[at]).filter(|file| *file != NIL)
    }

    /// Gives a file a name that no other file has.
    pub(super) fn insert(&mut self, name: FileName, file: u32) {
        debug_assert!(self.get(name).is_none(), "{name:?} is there");
        let (piece, at) = place(name);
        let piece = self.0.entry(piece).or_insert_with(|| Piece { files: Box::new([NIL; PIECE as usize]), count: 0 });
        piece.files[at] = file;
        piece.count += 1;
    }

    /// Removes a name; its file.
    pub(super) fn remove(&mut self, name: FileName) -> Option<u32> {
        let (number, at) = place(name);
        let piece = self.0.get_mut(&number)?;
        let file = std::mem::replace(&mut piece.files[at], NIL);
        if file == NIL {
            return None;
        }
        piece.count -= 1;
        if piece.count == 0 {
            self.0.remove(&number);
        }
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_s_until_it_is_removed() {
        let mut names = Names::default();
        let all = [(0, 0), (0, 255), (0, 256), (1, 0), (1, u64::MAX)].map(|(disk, number)| FileName::new(disk, number));
        all.iter().zip(0..).for_each(|(name, file)| names.insert(*name, file));
        assert_eq!(all.map(|name| names.get(name)), [0, 1, 2, 3, 4].map(Some));
        assert_eq!([FileName::new(0, 1), FileName::new(2, 0)].map(|name| names.get(name)), [None; 2]);
        assert_eq!([names.remove(all[1]), names.remove(all[1]), names.get(all[0])], [Some(1), None, Some(0)]);
        all.iter().for_each(|name| _ = names.remove(*name));
        assert!(names.0.is_empty());
    }
}
