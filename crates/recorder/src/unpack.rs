//! Unpacks the output of the machine's debug port.
//!
//! It is a stream of frames, one a file: `KTG1`, the name's length (u8), the name, the length and
//! checksum (FNV-1a) of the contents (u64 each, little-endian), the contents. The last frame,
//! `end`, holds the number of frames before it; a stream without it, or with another number, is
//! incomplete.

use std::fmt;

const MAGIC: &[u8] = b"KTG1";
const END: &str = "end";

/// The files a machine has sent, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// A defect of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadStream {
    /// It ends before `end`.
    CutShort { files: usize, last: Option<String> },
    /// No frame begins at this byte.
    NoFrame(usize),
    /// A name not allowed for a file.
    Name(String),
    /// The checksum of this file is wrong.
    Checksum(String),
    /// Some files did not arrive.
    Count { sent: u64, arrived: usize },
    /// Two files have this name.
    Twice(String),
}

impl fmt::Display for BadStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadStream::CutShort { files: 0, .. } => f.write_str("no results came out of the machine"),
            BadStream::CutShort { files, last } => {
                write!(f, "the results are cut short: {files} files, the last '{}'", last.as_deref().unwrap_or("?"))
            }
            BadStream::NoFrame(at) => write!(f, "the results are damaged at byte {at}"),
            BadStream::Name(name) => write!(f, "the results hold a file '{}'", name.escape_default()),
            BadStream::Checksum(name) => write!(f, "'{name}' is damaged in the results"),
            BadStream::Count { sent, arrived } => write!(f, "{sent} files were sent, but {arrived} arrived"),
            BadStream::Twice(name) => write!(f, "the results hold '{name}' twice"),
        }
    }
}

/// Unpacks a stream.
///
/// # Errors
/// If it is cut short or damaged.
pub(super) fn unpack(stream: &[u8]) -> Result<Sent, BadStream> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut rest = stream;
    loop {
        let at = stream.len() - rest.len();
        let cut_short = || BadStream::CutShort { files: files.len(), last: files.last().map(|(n, _)| n.clone()) };
        let magic = take(&mut rest, MAGIC.len()).ok_or_else(cut_short)?;
        if magic != MAGIC {
            return Err(BadStream::NoFrame(at));
        }
        let name_len = take(&mut rest, 1).ok_or_else(cut_short)?[0];
        let name = take(&mut rest, usize::from(name_len)).ok_or_else(cut_short)?;
        let len = number(&mut rest).ok_or_else(cut_short)?;
        let checksum = number(&mut rest).ok_or_else(cut_short)?;
        let contents = usize::try_from(len).ok().and_then(|n| take(&mut rest, n)).ok_or_else(cut_short)?;
        let name = file_name(name)?;
        if fnv1a(contents) != checksum {
            return Err(BadStream::Checksum(name));
        }
        if name == END {
            let sent = number(&mut &*contents).ok_or_else(cut_short)?;
            return if sent == files.len() as u64 {
                Ok(Sent { files })
            } else {
                Err(BadStream::Count { sent, arrived: files.len() })
            };
        }
        if files.iter().any(|(n, _)| *n == name) {
            return Err(BadStream::Twice(name));
        }
        files.push((name, contents.to_vec()));
    }
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(n)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest, 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Accepts only names that are safe for a file on the host.
fn file_name(bytes: &[u8]) -> Result<String, BadStream> {
    let name = String::from_utf8_lossy(bytes).into_owned();
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(fine) {
        return Err(BadStream::Name(name));
    }
    Ok(name)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, contents: &[u8]) -> Vec<u8> {
        let mut f = MAGIC.to_vec();
        f.push(name.len() as u8);
        f.extend(name.as_bytes());
        f.extend((contents.len() as u64).to_le_bytes());
        f.extend(fnv1a(contents).to_le_bytes());
        f.extend(contents);
        f
    }

    fn stream(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut s: Vec<u8> = files.iter().flat_map(|(n, c)| frame(n, c)).collect();
        s.extend(frame(END, &(files.len() as u64).to_le_bytes()));
        s
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let sent = unpack(&stream(&[("t0.snap", b"ZONE"), ("empty", b"")])).expect("whole");
        assert_eq!(sent.files, [("t0.snap".to_string(), b"ZONE".to_vec()), ("empty".to_string(), Vec::new())]);
    }

    #[test]
    fn a_stream_cut_anywhere_is_noticed() {
        let whole = stream(&[("t0.snap", b"ZONE"), ("res.bin", &[1, 2, 3, 4])]);
        for n in 0..whole.len() {
            assert!(unpack(&whole[..n]).is_err(), "cut after {n} bytes");
        }
        let one = frame("a", b"b").len();
        let cut = |n: usize| unpack(&whole[..n]).expect_err("cut").to_string();
        assert_eq!(cut(one - 1), "no results came out of the machine");
        assert!(cut(whole.len() - 1).contains("2 files, the last 'res.bin'"));
    }

    #[test]
    fn damage_is_noticed() {
        let mut damaged = stream(&[("t0.snap", b"ZONE")]);
        let at = damaged.windows(4).position(|w| w == b"ZONE").expect("there");
        damaged[at] ^= 1;
        assert_eq!(unpack(&damaged), Err(BadStream::Checksum("t0.snap".into())));
        let lost = [frame("a", b"b"), frame(END, &2u64.to_le_bytes())].concat();
        assert_eq!(unpack(&lost), Err(BadStream::Count { sent: 2, arrived: 1 }));
        assert_eq!(unpack(b"KTG2\x01a"), Err(BadStream::NoFrame(0)));
        assert_eq!(unpack(&stream(&[("a", b""), ("a", b"")])), Err(BadStream::Twice("a".into())));
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for name in ["../x", "/etc/x", "", ".x", "a b"] {
            assert!(matches!(unpack(&stream(&[(name, b"")])), Err(BadStream::Name(_))), "{name}");
        }
    }

    #[test]
    fn a_length_beyond_all_memory_is_a_stream_cut_short() {
        let mut s = frame("a", b"");
        s[6..14].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(unpack(&s), Err(BadStream::CutShort { .. })));
    }
}
