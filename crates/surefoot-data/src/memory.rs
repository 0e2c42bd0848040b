//! Memory that this process can still use.

/// Bytes that can be allocated without swapping: free memory of the machine or of the process's control
/// group, whichever is less. On systems where neither is known, the largest possible allocation.
pub fn available_memory() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| in_meminfo(&text));
    let number = |path: &str| read(path).and_then(|text| text.trim().parse::<u64>().ok());
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(limit, used)| limit.saturating_sub(used));
    machine.into_iter().chain(group).min().unwrap_or(isize::MAX as u64)
}

/// The available memory in `/proc/meminfo`, which has lines such as `MemAvailable:  1024 kB`.
fn in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_memory_is_available() {
        assert!(available_memory() > 1 << 20);
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       16000 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(in_meminfo(text), Some(2 << 20));
        assert_eq!(in_meminfo("MemAvailable: many kB"), None);
    }
}
