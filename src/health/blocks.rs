//! Finds repeated blocks: passages of at least six equal lines, without regard to white space and blank lines.

use agent_core::health::BLOCK_LINES;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Consecutive lines of a file that are not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Hash of the lines, in which each run of white space is one space.
    pub hash: u64,
    /// First line, from 1.
    pub line: u32,
    /// Last line.
    pub end_line: u32,
}

/// Returns every block of six lines of `source`, by its first line.
pub fn blocks(source: &[u8]) -> Vec<Block> {
    let lines: Vec<(u32, u64)> = (1_u32..)
        .zip(source.split(|byte| *byte == b'\n'))
        .filter_map(|(number, line)| Some((number, hash_line(line)?)))
        .collect();
    let block = |lines: &[(u32, u64)]| {
        let (first, last) = (lines.first()?, lines.last()?);
        let mut hasher = DefaultHasher::new();
        for (_, hash) in lines {
            hash.hash(&mut hasher);
        }
        Some(Block { hash: hasher.finish(), line: first.0, end_line: last.0 })
    };
    lines.windows(BLOCK_LINES).filter_map(block).collect()
}

/// Returns the hash of the words of a line; `None` for a blank line.
fn hash_line(line: &[u8]) -> Option<u64> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).peekable();
    words.peek()?;
    let mut hasher = DefaultHasher::new();
    words.for_each(|word| word.hash(&mut hasher));
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_ignore_white_space_and_blank_lines() {
        let tight = blocks(b"a b\nc\nd\ne\nf\ng\n");
        let loose = blocks(b"\n  a   b\t\r\nc\n\n\nd\ne \nf\n  g");
        assert_eq!((tight.len(), loose.len()), (1, 1));
        assert_eq!(tight[0].hash, loose[0].hash);
        assert_eq!((loose[0].line, loose[0].end_line), (2, 9));
        assert_ne!(blocks(b"ab\nc\nd\ne\nf\ng")[0].hash, tight[0].hash);
        assert_eq!(blocks(b"1\n2\n3\n4\n5\n"), []);
        assert_eq!(blocks(b"1\n2\n3\n4\n5\n6\n7").len(), 2);
    }
}
