//! Tokens: what tells one call of one process from all others.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A text that no other call has, on any machine: the host, the process, when it began, and a
/// counter. Nothing is decided by it; it only says whose a row is.
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> Token {
        static PROCESS: OnceLock<String> = OnceLock::new();
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let process = PROCESS.get_or_init(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{}:{}:{}", host(), std::process::id(), since.as_nanos())
        });
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        Token(format!("{process}:{call}"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of this machine.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME"))
        .or_else(|_| std::env::var("COMPUTERNAME"));
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_the_same() {
        assert_ne!(Token::new().as_str(), Token::new().as_str());
    }
}
