//! File names in a patch, as git writes them.

use crate::RelPath;

/// A path below a prefix (`a/` or `b/`), quoted if it has bytes that a patch can't contain.
pub(super) fn prefixed(prefix: &str, path: &RelPath) -> Vec<u8> {
    quoted(&[prefix.as_bytes(), path.as_bytes()].concat())
}

/// A path, quoted if it has bytes that a patch can't contain.
pub(super) fn quoted(name: &[u8]) -> Vec<u8> {
    if !name.iter().any(|byte| needs_quotes(*byte)) {
        return name.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in name {
        match byte {
            0x07 => quoted.extend(b"\\a"),
            0x08 => quoted.extend(b"\\b"),
            b'\t' => quoted.extend(b"\\t"),
            b'\n' => quoted.extend(b"\\n"),
            0x0b => quoted.extend(b"\\v"),
            0x0c => quoted.extend(b"\\f"),
            b'\r' => quoted.extend(b"\\r"),
            b'"' => quoted.extend(b"\\\""),
            b'\\' => quoted.extend(b"\\\\"),
            byte if needs_quotes(*byte) => quoted.extend(format!("\\{byte:03o}").bytes()),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

fn needs_quotes(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\'
}
