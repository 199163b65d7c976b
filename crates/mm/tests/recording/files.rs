//! The files of the recordings under `oracle/golden`.

use std::path::Path;

/// The contents of one file of a recording, unpacked.
pub fn unpack(recording: &str, file: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden");
    let path = folder.join(recording).join(format!("{file}.xz"));
    let shown = path.display();
    let packed = std::fs::read(&path).unwrap_or_else(|e| panic!("{shown}: {e}"));
    let mut out = Vec::new();
    lzma_rs::xz_decompress(&mut packed.as_slice(), &mut out).unwrap_or_else(|e| panic!("{shown}: {e:?}"));
    out
}

/// The same as text.
pub fn text(recording: &str, file: &str) -> String {
    String::from_utf8(unpack(recording, file)).unwrap_or_else(|e| panic!("{recording}/{file}: {e}"))
}

/// The same as little-endian words.
pub fn words(recording: &str, file: &str) -> Vec<u32> {
    let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("four bytes"));
    unpack(recording, file).chunks_exact(4).map(word).collect()
}
