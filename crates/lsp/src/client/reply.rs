//! The answer to a request.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A result, as the server wrote it.
///
/// It shares the memory of the read it arrived in, up to 64 KiB for a small one. Copy it to keep it for long.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply {
    result: Bytes,
}

impl Reply {
    pub(super) fn new(frame: &Bytes, result: &RawValue) -> Self {
        Self {
            result: frame.slice_ref(result.get().as_bytes()),
        }
    }

    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.result)
    }

    /// The JSON text of the result.
    pub fn bytes(&self) -> &Bytes {
        &self.result
    }

    pub fn into_bytes(self) -> Bytes {
        self.result
    }

    /// The result, to be read piece by piece. This validates all of it.
    pub fn raw(&self) -> Result<&RawValue, serde_json::Error> {
        self.parse()
    }

    pub fn is_null(&self) -> bool {
        &self.result[..] == b"null"
    }
}
