//! Looks after the workers of a search, and shows what becomes of the trials.

use super::pool::{WorkerPool, pool_name};
use super::{Arguments, Project};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::screen::Screen;
use crate::output::tune::{Standing, Summary};
use crate::output::{Console, to_stderr};
use std::time::{Duration, Instant};
use surefoot_tune::storage::{Storage, View};

/// How often the store is looked at.
const GLANCE: Duration = Duration::from_millis(200);
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
    let study = store.join(&project.entry())?;
    let mut view = View::new(&study);
    store.refresh_reports(&mut view)?;
    let screen = Screen::new(console);
    let pool = pool_name();
    let mut standing = Standing::new(&project.study, &view, &pool);
    let name = store.name().to_owned();
    standing.open(&name, &screen);
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
    let (mut asked_to_leave, mut given_up) = (None, false);
    let tell_warnings = |pool: &mut WorkerPool<'_>| {
        for warning in pool.warnings() {
            if !arguments.quiet {
                screen.above(|| to_stderr(&warning));
            }
        }
    };
    while pool.poll(asked_to_leave.is_some())? {
        tell_warnings(&mut pool);
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
        standing.update(&view, begun.elapsed(), &screen);
        match asked_to_leave {
            None if interrupt.asked() || standing.is_hopeless() => {
                given_up = !interrupt.asked();
                // At a terminal they were asked too; a signal to this process alone they do not see.
                pool.signal(rustix::process::Signal::TERM);
                asked_to_leave = Some(Instant::now());
            }
            Some(since) if since.elapsed() > SHUTDOWN_TIMEOUT => {
                pool.signal(rustix::process::Signal::KILL);
            }
            _ => {}
        }
        std::thread::sleep(GLANCE);
    }
    tell_warnings(&mut pool);
    store.refresh_reports(&mut view)?;
    standing.update(&view, begun.elapsed(), &screen);
    screen.clear();
    let summary = Summary::of(&project.study, &view, &name, begun.elapsed());
    summary.show(&project.dir, console);
    if let Some(failure) = pool.failure() {
        return Err(failure);
    }
    if interrupt.asked() {
        console.note("interrupted; the same command goes on with it");
        return Ok(Exit::Interrupted);
    }
    let remedy = "they stay so in the store: when the reason is mended, try more (--trials), or begin anew elsewhere (--runs)";
    if given_up {
        let failed = standing.failures_in_a_row();
        console
            .note(&format!("given up, because the last {failed} trials have all failed; {remedy}"));
        return Ok(Exit::No);
    }
    if standing.failures_only() > 0 {
        console.note(&format!("all trials of this search have failed; {remedy}"));
    }
    Ok(match summary.best() {
        Some(_) => Exit::Done,
        None => Exit::No,
    })
}
