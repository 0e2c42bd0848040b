//! Supervises the workers of a search and shows its progress.

use super::pool::{WorkerPool, pool_name};
use super::{Arguments, Project};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::screen::Screen;
use crate::output::tune::{SearchProgress, Summary};
use crate::output::{Console, to_stderr};
use std::time::{Duration, Instant};
use surefoot_tune::storage::{Storage, View};

/// Interval between updates from the store.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time for workers to stop before they are killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(
    project: &Project,
    arguments: &Arguments,
    console: &Console,
) -> Result<Exit, Failure> {
    std::fs::create_dir_all(&project.dir)
        .map_err(|error| Failure::not_created(&project.dir, &error))?;
    let mut store = Storage::open(&project.store)?;
    let study = store.join(&project.study.entry())?;
    let mut view = View::new(&study);
    store.refresh_reports(&mut view)?;
    let screen = Screen::new(console);
    let pool = pool_name();
    let mut progress = SearchProgress::new(&project.study, &view, &pool);
    let name = store.name().to_owned();
    progress.open(&name, &screen);
    let interrupt = {
        let (screen, quiet) = (screen.clone(), arguments.quiet);
        Interrupt::listen(move || {
            if !quiet {
                let text = "stopping after this step; Ctrl-C again stops at once";
                screen.above(|| to_stderr(text));
            }
        })?
    };
    let begun = Instant::now();
    let mut pool = WorkerPool::start(project, arguments, begun, pool)?;
    let (mut stopping_since, mut given_up) = (None, false);
    let print_warnings = |pool: &mut WorkerPool<'_>| {
        for warning in pool.warnings() {
            if !arguments.quiet {
                screen.above(|| to_stderr(&warning));
            }
        }
    };
    while pool.poll(stopping_since.is_some())? {
        print_warnings(&mut pool);
        for (worker, status) in pool.killed() {
            let limits = project.study.settings.limits();
            let trials = store.mark_dead(study.id, &worker, &limits)?;
            let trials: Vec<String> = trials.iter().map(|n| format!(" at trial {n}")).collect();
            if !arguments.quiet {
                let text = format!("  a worker was killed ({status}){}", trials.join(","));
                screen.above(|| to_stderr(&text));
            }
        }
        pool.restart_killed()?;
        store.refresh_reports(&mut view)?;
        progress.update(&view, begun.elapsed(), &screen);
        match stopping_since {
            None if interrupt.asked() || progress.keeps_failing() => {
                given_up = !interrupt.asked();
                // Workers see Ctrl-C at a terminal, but not a signal to this process alone.
                pool.signal(rustix::process::Signal::TERM);
                stopping_since = Some(Instant::now());
            }
            Some(since) if since.elapsed() > SHUTDOWN_TIMEOUT => {
                pool.signal(rustix::process::Signal::KILL);
            }
            _ => {}
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    print_warnings(&mut pool);
    store.refresh_reports(&mut view)?;
    progress.update(&view, begun.elapsed(), &screen);
    screen.clear();
    let summary = Summary::of(&project.study, &view, &name, begun.elapsed());
    summary.show(&project.dir, console);
    if let Some(failure) = pool.failure() {
        return Err(failure);
    }
    if interrupt.asked() {
        console.note("interrupted; run the same command again to continue");
        return Ok(Exit::Interrupted);
    }
    let remedy = "fix the cause, then run more trials (--trials) or start over in another directory (--runs)";
    if given_up {
        let failed = progress.failures_in_a_row();
        console.note(&format!("stopped because the last {failed} trials failed; {remedy}"));
        return Ok(Exit::No);
    }
    if progress.failures_only() > 0 {
        console.note(&format!("all trials failed; {remedy}"));
    }
    Ok(match summary.best() {
        Some(_) => Exit::Done,
        None => Exit::No,
    })
}
