//! Binary contents in a patch: compressed and encoded as text.

use std::io::{self, Write};

use sha1::{Digest, Sha1};

/// The alphabet of git's base 85.
const LETTERS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// How many bytes a line encodes; git doesn't read longer ones.
const LINE_BYTES: usize = 52;
/// The compression level, from 0 to 10; this is zlib's default.
const COMPRESSION_LEVEL: u8 = 6;

pub(super) fn git_object_id(content: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes how to get from one content to the other and back, as two complete literals.
pub(super) fn write_binary(before: &[u8], after: &[u8], to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"GIT binary patch\n")?;
    write_literal(after, to)?;
    write_literal(before, to)
}

fn write_literal(content: &[u8], to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "literal {}", content.len())?;
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(content, COMPRESSION_LEVEL);
    for line in packed.chunks(LINE_BYTES) {
        to.write_all(&line_of(line))?;
    }
    to.write_all(b"\n")
}

/// Encodes a line: its length as a letter, then five letters for each four bytes.
fn line_of(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u8;
    let mut line = vec![match length {
        1..=26 => b'A' + length - 1,
        _ => b'a' + length - 27,
    }];
    for chunk in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..chunk.len()].copy_from_slice(chunk);
        let mut number = u32::from_be_bytes(four);
        let mut letters = [0; 5];
        for letter in letters.iter_mut().rev() {
            *letter = LETTERS[(number % 85) as usize];
            number /= 85;
        }
        line.extend(letters);
    }
    line.push(b'\n');
    line
}
