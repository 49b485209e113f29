//! One text, and where its lines begin.

use std::{ops, sync::Arc};

use protocol::{Position, Range};

use super::{PositionEncoding, PositionError, WirePosition, WireRange};

/// A text with an index of its lines. A line ends with `\n`, `\r\n` or `\r`, per the protocol.
#[derive(Clone, Debug)]
pub struct LineIndex {
    text: Arc<str>,
    /// Where each line begins; never empty, because an empty text has one empty line.
    starts: Arc<[usize]>,
}

impl LineIndex {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(index, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0)
            .chain(ends.map(|(index, _)| index + 1))
            .collect();
        Self { text, starts }
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How many lines there are. A text that ends with a line break has an empty last line.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// A line without its line break; the first is number 0.
    pub fn line(&self, number: usize) -> Option<&str> {
        Some(&self.text[self.line_range(number)?])
    }

    /// Where a line is, without its line break.
    pub(crate) fn line_range(&self, number: usize) -> Option<ops::Range<usize>> {
        let start = *self.starts.get(number)?;
        let next = self.starts.get(number + 1).copied().unwrap_or(self.text.len());
        let whole = &self.text[start..next];
        let content = match whole.strip_suffix('\n') {
            Some(rest) => rest.strip_suffix('\r').unwrap_or(rest),
            None => whole.strip_suffix('\r').unwrap_or(whole),
        };
        Some(start..start + content.len())
    }

    pub(crate) fn line_at(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        (line, self.starts[line])
    }

    /// The offset of a server's position. A position outside the text is moved into it: a line past the last means the
    /// end of the text, a character past the end of its line means the end of that line, and a position inside a
    /// character means its beginning.
    pub fn offset_of_wire(&self, position: WirePosition, encoding: PositionEncoding) -> usize {
        match self.line_range(position.line as usize) {
            Some(range) => {
                range.start + encoding.bytes(&self.text[range.clone()], position.character as usize)
            }
            None => self.text.len(),
        }
    }

    /// The offsets of a server's range, moved into the text. A range that ends before it begins is empty.
    pub fn offsets_of_wire(&self, range: WireRange, encoding: PositionEncoding) -> ops::Range<usize> {
        let start = self.offset_of_wire(range.start, encoding);
        start..self.offset_of_wire(range.end, encoding).max(start)
    }

    /// The position of an offset, in the server's units.
    pub fn wire_at(&self, offset: usize, encoding: PositionEncoding) -> WirePosition {
        let (line, before) = self.before(offset);
        WirePosition {
            line: number(line),
            character: number(encoding.length(before)),
        }
    }

    /// The position of an offset, as people count.
    pub fn position_at(&self, offset: usize) -> Position {
        let (line, before) = self.before(offset);
        Position {
            line: number(line + 1),
            column: number(PositionEncoding::Utf32.length(before) + 1),
        }
    }

    /// The offset of a person's position, which must exist in the text.
    pub fn offset_of(&self, position: Position) -> Result<usize, PositionError> {
        let Position { line, column } = position;
        if line == 0 || column == 0 {
            return Err(PositionError::Zero { position });
        }
        let range = self
            .line_range(line as usize - 1)
            .ok_or(PositionError::NoSuchLine {
                line,
                lines: number(self.line_count()),
            })?;
        let content = &self.text[range.clone()];
        let length = PositionEncoding::Utf32.length(content);
        if column as usize > length + 1 {
            return Err(PositionError::NoSuchColumn {
                line,
                column,
                length: number(length),
            });
        }
        Ok(range.start + PositionEncoding::Utf32.bytes(content, column as usize - 1))
    }

    pub fn wire_of(
        &self,
        position: Position,
        encoding: PositionEncoding,
    ) -> Result<WirePosition, PositionError> {
        Ok(self.wire_at(self.offset_of(position)?, encoding))
    }

    pub fn wire_of_range(
        &self,
        range: Range,
        encoding: PositionEncoding,
    ) -> Result<WireRange, PositionError> {
        let start = self.wire_of(range.start, encoding)?;
        let end = self.wire_of(range.end, encoding)?;
        if end < start {
            return Err(PositionError::Inverted { range });
        }
        Ok(WireRange { start, end })
    }

    pub fn range_at(&self, offsets: &ops::Range<usize>) -> Range {
        Range {
            start: self.position_at(offsets.start),
            end: self.position_at(offsets.end),
        }
    }

    /// The line of an offset, and the part of the line before it. An offset inside a character counts as the
    /// character's beginning, one inside a line break as the line's end, one past the text as its end.
    fn before(&self, offset: usize) -> (usize, &str) {
        let offset = self.text.floor_char_boundary(offset);
        let (line, start) = self.line_at(offset);
        let end = self.line_range(line).map_or(start, |range| range.end);
        (line, &self.text[start..offset.min(end)])
    }
}

/// Counts that don't fit would need texts of four gigabytes, which are refused long before.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
