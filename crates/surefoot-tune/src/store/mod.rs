//! Where a study is kept.
