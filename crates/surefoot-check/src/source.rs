//! Checked files and locations in them.

use std::ops::Range;
use std::path::PathBuf;

/// Index into [`SourceFiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A file and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path, as shown in findings.
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

impl SourceFile {
    /// Path relative to the current directory, if the file is below it.
    pub fn relative_path(&self) -> PathBuf {
        crate::project::relative(&self.path)
    }

    /// 1-based line and column of a byte offset. Columns count characters.
    pub fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at.min(self.text.len())];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }
}

/// All files of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFiles(pub Vec<SourceFile>);

impl SourceFiles {
    /// Returns a file.
    pub fn get(&self, file: FileId) -> &SourceFile {
        &self.0[file.0 as usize]
    }
}

/// A byte range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// Byte range.
    pub range: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_begin_at_one() {
        let source = SourceFile { path: "a.py".into(), text: "é = 1\nseed(é)\n".into() };
        assert_eq!(source.line_and_column(0), (1, 1));
        let second = source.text.rfind('é').unwrap();
        assert_eq!(source.line_and_column(second), (2, 6));
    }
}
