//! The lines above a body.
//!
//! A line ends in carriage return and line feed, per the protocol; no known server sends less. Anything else is usually
//! something that a server printed on its standard output by mistake, so an error includes the beginning of the line:
//! the author of that server needs to see it.

use super::frame::FrameLimits;

/// How much of an offending line an error repeats.
const EXCERPT_BYTES: usize = 80;

/// A peer violated the framing. Nothing after it can be trusted, so the connection ends.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// A line that isn't a header: usually text printed where only messages are allowed.
    #[error("expected a header, found {line:?}")]
    NotAHeader { line: String },
    #[error("the header line {line:?} does not end in CR LF")]
    BareLineFeed { line: String },
    #[error("the headers of a message exceed {limit} bytes")]
    HeadersTooLong { limit: usize },
    #[error("a message has more than {limit} header lines")]
    TooManyHeaders { limit: usize },
    #[error("a message has no Content-Length")]
    MissingLength,
    #[error("a message has more than one Content-Length")]
    DuplicateLength,
    #[error("the Content-Length {value:?} is not a length")]
    InvalidLength { value: String },
    #[error("the Content-Length {value} exceeds the limit of {limit}")]
    AbsurdLength { value: String, limit: u64 },
    #[error("the Content-Type {value:?} does not say UTF-8")]
    WrongCharset { value: String },
}

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Head {
    /// How many bytes the headers take, including the empty line.
    pub(super) header_bytes: usize,
    /// How many bytes the body has, if the peer is honest.
    pub(super) body_bytes: u64,
}

/// What has been read of the headers of the next message. No byte is read twice.
#[derive(Debug, Default)]
pub(super) struct HeaderReader {
    scanned: usize,
    line_start: usize,
    lines: usize,
    body_bytes: Option<u64>,
}

impl HeaderReader {
    /// Continues with the bytes of a message: the same as the last time, plus new ones.
    pub(super) fn read(&mut self, bytes: &[u8], limits: &FrameLimits) -> Result<Option<Head>, FrameError> {
        loop {
            let newline = bytes[self.scanned..].iter().position(|byte| *byte == b'\n');
            let reached = newline.map_or(bytes.len(), |newline| self.scanned + newline + 1);
            if reached > limits.header_bytes {
                return Err(self.too_long(bytes, limits));
            }
            self.refuse_at_first_sight(bytes)?;
            self.scanned = reached;
            if newline.is_none() {
                return Ok(None);
            }
            let line = &bytes[self.line_start..reached - 1];
            self.line_start = reached;
            if line == b"\r" {
                let body_bytes = self.body_bytes.ok_or(FrameError::MissingLength)?;
                return Ok(Some(Head {
                    header_bytes: reached,
                    body_bytes,
                }));
            }
            self.lines += 1;
            if self.lines > limits.header_lines {
                return Err(FrameError::TooManyHeaders {
                    limit: limits.header_lines,
                });
            }
            self.line(line, limits)?;
        }
    }

    /// Text that was printed by mistake may have no line end at all, so its first byte is enough to refuse it.
    fn refuse_at_first_sight(&self, bytes: &[u8]) -> Result<(), FrameError> {
        match bytes.get(self.line_start) {
            Some(byte) if !is_name_byte(*byte) && *byte != b'\r' => Err(FrameError::NotAHeader {
                line: excerpt(&bytes[self.line_start..]),
            }),
            _ => Ok(()),
        }
    }

    fn too_long(&self, bytes: &[u8], limits: &FrameLimits) -> FrameError {
        match self.refuse_at_first_sight(bytes) {
            Err(error) => error,
            Ok(()) => FrameError::HeadersTooLong {
                limit: limits.header_bytes,
            },
        }
    }

    fn line(&mut self, line: &[u8], limits: &FrameLimits) -> Result<(), FrameError> {
        let not_a_header = || FrameError::NotAHeader { line: excerpt(line) };
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .ok_or_else(not_a_header)?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().copied().all(is_name_byte) {
            return Err(not_a_header());
        }
        let value = value
            .strip_suffix(b"\r")
            .ok_or_else(|| FrameError::BareLineFeed { line: excerpt(line) })?;
        let value = value.trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.body_bytes.is_some() {
                return Err(FrameError::DuplicateLength);
            }
            self.body_bytes = Some(length(value, limits)?);
        } else if name.eq_ignore_ascii_case(b"content-type") && !is_utf8(value) {
            return Err(FrameError::WrongCharset {
                value: excerpt(value),
            });
        }
        Ok(())
    }
}

fn length(value: &[u8], limits: &FrameLimits) -> Result<u64, FrameError> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(value).ok().filter(|_| is_number);
    let text = text.ok_or_else(|| FrameError::InvalidLength {
        value: excerpt(value),
    })?;
    match text.parse::<u64>() {
        Ok(length) if length <= limits.skipped_bytes => Ok(length),
        _ => Err(FrameError::AbsurdLength {
            value: excerpt(value),
            limit: limits.skipped_bytes,
        }),
    }
}

/// Whether a content type means that the body is UTF-8. One without a character set does.
fn is_utf8(value: &[u8]) -> bool {
    let parameters = value.split(|byte| *byte == b';').skip(1);
    let mut charsets = parameters.filter_map(|parameter| {
        let parameter = parameter.trim_ascii();
        let equals = parameter.iter().position(|byte| *byte == b'=')?;
        let name = parameter[..equals].trim_ascii();
        name.eq_ignore_ascii_case(b"charset")
            .then(|| parameter[equals + 1..].trim_ascii())
    });
    charsets.all(|charset| {
        let bare = charset.strip_prefix(b"\"").unwrap_or(charset);
        let bare = bare.strip_suffix(b"\"").unwrap_or(bare);
        bare.eq_ignore_ascii_case(b"utf-8") || bare.eq_ignore_ascii_case(b"utf8")
    })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn excerpt(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(&line[..line.len().min(EXCERPT_BYTES)]).into_owned()
}
