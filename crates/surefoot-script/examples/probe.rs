//! Prints what a check finds.
use std::path::PathBuf;
fn main() {
    let verbose = std::env::var_os("V").is_some();
    let paths: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let start = std::time::Instant::now();
    let checked = surefoot_script::check(&paths, &surefoot_script::Settings::default());
    for u in &checked.unreadable {
        println!("UNREADABLE {} {} {:?}", u.path.display(), u.reason, u.at);
    }
    for f in &checked.findings {
        let s = checked.sources.get(f.place.file);
        let (line, _) = s.line_and_column(f.place.range.start);
        let text = s.text.lines().nth(line - 1).unwrap_or("").trim();
        println!(
            "{}:{} [{}] {}\n      > {}",
            s.path.display(),
            line,
            f.rule,
            f.message,
            text
        );
        if verbose {
            println!("      help: {}", f.help);
            for n in &f.notes {
                let s = checked.sources.get(n.place.file);
                println!(
                    "      note {}: {}",
                    s.line_and_column(n.place.range.start).0,
                    n.text
                );
            }
        }
    }
    if verbose {
        for c in &checked.checkpoints {
            let s = checked.sources.get(c.place.file);
            println!(
                "CHECKPOINT {}:{} saves={}",
                s.path.display(),
                s.line_and_column(c.place.range.start).0,
                c.saves
            );
            for m in &c.members {
                println!("   {:?} {} saved={} {}", m.kind, m.name, m.saved, m.reason);
            }
            if std::env::var_os("C").is_some() {
                println!("{}", c.code());
            }
        }
    }
    eprintln!(
        "{} files, {} findings, {} suppressed, {} checkpoints, {} unreadable, {:?}",
        checked.files,
        checked.findings.len(),
        checked.suppressed,
        checked.checkpoints.len(),
        checked.unreadable.len(),
        start.elapsed()
    );
}
