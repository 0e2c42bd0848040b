//! Writes the seeds of the target `run` to `fuzz/corpus/run`, from runs that are trained now.

use std::path::Path;
use surefoot_fuzz::run_seeds;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/run");
    std::fs::create_dir_all(&folder)?;
    for (number, seed) in run_seeds().iter().enumerate() {
        std::fs::write(folder.join(format!("{number:02}")), seed)?;
    }
    Ok(())
}
