//! Numbers and texts as bytes: small numbers are short.

pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(super) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Reads bytes from the front. Returns `None` for invalid bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front<'bytes>(pub(super) &'bytes [u8]);

impl<'bytes> Front<'bytes> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The next number, if it fits.
    pub(super) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'bytes [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next bytes, as many as the array has.
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn text(&mut self) -> Option<&'bytes str> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_put_is_taken(numbers in prop::collection::vec(any::<u64>(), 0..20), text in ".*") {
            let mut bytes = Vec::new();
            for shift in 0..64 {
                put(&mut bytes, u64::MAX >> shift);
            }
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            put_text(&mut bytes, &text);
            let mut front = Front(&bytes);
            for shift in 0..64 {
                prop_assert_eq!(front.number(), Some(u64::MAX >> shift));
            }
            for number in numbers {
                prop_assert_eq!(front.number(), Some(number));
            }
            prop_assert_eq!(front.text(), Some(text.as_str()));
            prop_assert!(front.is_empty());
        }

        #[test]
        fn any_bytes_are_taken_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut front = Front(&bytes);
            while front.number().is_some() && front.text().is_some() {}
        }
    }
}
