//! The tokens that a model knows, with their ranks.

use std::io::{Error, ErrorKind};

use fnv::FnvHashMap;

/// Tokens by their bytes. A token's rank is its place in the published list: low ranks are merged first.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    ranks: FnvHashMap<&'static [u8], u32>,
    longest_token: usize,
}

impl Vocabulary {
    /// Every rank fits into so many bits.
    pub(crate) const RANK_BITS: u32 = 18;

    /// Reads what `scripts/vocabulary.py` writes: the tokens' lengths in order of rank, a zero, the tokens themselves, all of it
    /// compressed. The unpacked bytes are never freed, so unpack each vocabulary once.
    pub(crate) fn unpack(packed: &[u8]) -> Result<Self, Error> {
        let unpacked: &'static [u8] = zstd::decode_all(packed)?.leak();
        let damaged = || Error::new(ErrorKind::InvalidData, "the lengths don't add up");
        let end = unpacked
            .iter()
            .position(|length| *length == 0)
            .ok_or_else(damaged)?;
        let (lengths, mut tokens) = (&unpacked[..end], &unpacked[end + 1..]);
        let mut ranks = FnvHashMap::with_capacity_and_hasher(lengths.len(), Default::default());
        for (rank, length) in (0..).zip(lengths) {
            let (token, rest) = tokens
                .split_at_checked(usize::from(*length))
                .ok_or_else(damaged)?;
            ranks.insert(token, rank);
            tokens = rest;
        }
        if ranks.len() != lengths.len() || !tokens.is_empty() || ranks.len() > 1 << Self::RANK_BITS {
            return Err(damaged());
        }
        let longest_token = lengths.iter().copied().max().map_or(0, usize::from);
        Ok(Self { ranks, longest_token })
    }

    /// Returns the rank of the token with exactly these bytes.
    pub(crate) fn rank(&self, bytes: &[u8]) -> Option<u32> {
        // Hashing takes time in proportion to the length, and pieces can be as long as the text.
        if bytes.len() > self.longest_token {
            return None;
        }
        self.ranks.get(bytes).copied()
    }

    pub(crate) fn longest_token(&self) -> usize {
        self.longest_token
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use sha2::{Digest as _, Sha256};

    use super::Vocabulary;

    /// Writes a vocabulary as it is published, and hashes that. The hashes are those in `tiktoken_ext/openai_public.py`.
    #[test]
    fn vocabularies_are_the_published_ones() {
        let packed: [(&[u8], &str); 2] = [
            (
                include_bytes!("../data/o200k.zst"),
                "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
            ),
            (
                include_bytes!("../data/cl100k.zst"),
                "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            ),
        ];
        for (packed, expected) in packed {
            let vocabulary = Vocabulary::unpack(packed).unwrap();
            let mut tokens: Vec<_> = vocabulary.ranks.iter().collect();
            tokens.sort_by_key(|(_, rank)| **rank);
            let mut published = String::new();
            for (token, rank) in tokens {
                writeln!(published, "{} {rank}", BASE64_STANDARD.encode(token)).unwrap();
            }
            let hash = Sha256::digest(published.as_bytes());
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, expected);
        }
    }

    #[test]
    fn damage_is_noticed() {
        let pack = |unpacked: &[u8]| zstd::encode_all(unpacked, 0).unwrap();
        let ranks =
            |unpacked: &[u8]| Vocabulary::unpack(&pack(unpacked)).map(|vocabulary| vocabulary.ranks.len());
        assert_eq!(ranks(b"\x01\x02\0abc").unwrap(), 2);
        for damaged in ["", "\x01\x02", "\x01\x02\0ab", "\x01\x02\0abcd", "\x01\x01\0aa"] {
            assert!(ranks(damaged.as_bytes()).is_err(), "{damaged:?}");
        }
        assert!(Vocabulary::unpack(b"not compressed").is_err());
    }
}
