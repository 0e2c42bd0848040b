//! The `surefoot` command.

use std::ffi::{c_int, c_long};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

/// `mi_option_purge_delay` of mimalloc 2 and 3.
const PURGE_DELAY: c_int = 15;
/// Time in milliseconds after which unused memory is returned to the system. A training step frees and
/// allocates the same memory again; with the default of 10 ms the system would clear it every time.
const KEEP_FREE_MEMORY: c_long = 10_000;

fn main() -> ExitCode {
    // SAFETY: a function of the allocator that is linked above; it accepts any value.
    unsafe { mi_option_set(PURGE_DELAY, KEEP_FREE_MEMORY) };
    ExitCode::from(surefoot::run(std::env::args_os()))
}
