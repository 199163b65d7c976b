//! Hashes by which stored inputs and files are known again.

use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
