//! Numbers and texts as bytes: a number takes seven bits a byte, the lowest first; a text has its
//! length before it. Reading refuses what was cut short.

/// Appends a number to the bytes.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text to the bytes.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a difference: those near zero are short, whatever their sign.
pub fn put_difference(out: &mut Vec<u8>, difference: i64) {
    put(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// Bytes that are left to read.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn difference(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differences_and_texts_come_back_and_what_was_cut_does_not() {
        let mut out = Vec::new();
        let numbers = [0, 1, 127, 128, 1 << 35, u64::MAX];
        let differences = [0, -1, 1, i64::MIN, i64::MAX];
        numbers.iter().for_each(|n| put(&mut out, *n));
        differences.iter().for_each(|d| put_difference(&mut out, *d));
        put_text(&mut out, "zwölf");
        let mut bytes = Bytes(&out);
        assert!(numbers.iter().all(|n| bytes.number() == Some(*n)));
        assert!(differences.iter().all(|d| bytes.difference() == Some(*d)));
        assert_eq!((bytes.text(), bytes.is_empty()), (Some("zwölf"), true));
        assert_eq!(Bytes(&[0x80]).number(), None);
        assert_eq!(Bytes(&[3, b'a']).text(), None);
    }
}
