//! Start of the processes of a team as threads, or of one that joins a team.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::team::Team;

/// Program of a process.
pub(crate) type Program<'p> = &'p (dyn Fn(&Context) + Sync);

/// Runs a program on `processes` threads, of which the calling one is process 0, and shares `processors` out among
/// them.
///
/// # Errors
///
/// [`Error::OutOfMemory`] if the threads cannot be started; then nothing has run. [`Error::Fatal`] if the
/// processes did not end in the same superstep, or some of them failed.
pub(crate) fn run(processes: usize, processors: u32, program: Program<'_>) -> Result<()> {
    let team = Team::new(processes)?;
    let share = |pid: usize| {
        let (each, rest) = (processors as usize / processes, processors as usize % processes);
        ((each + usize::from(pid < rest)) as u32).max(1)
    };
    let own = Process::new(Arc::clone(&team), 0, share(0))?;
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for pid in 1..processes {
            let process = Process::new(Arc::clone(&team), pid, share(pid));
            let gate = &gate;
            let run = move |process| gate.wait().then(|| run_process(process, program));
            let thread = process.and_then(|process| {
                let builder = std::thread::Builder::new().name(format!("lpf {pid}"));
                let builder = builder.stack_size(crate::stack::size());
                builder.spawn_scoped(scope, move || run(process)).map_err(|_| Error::OutOfMemory)
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    gate.open(false);
                    return Err(error);
                }
            }
        }
        gate.open(true);
        let mut result = run_process(own, program);
        for thread in threads {
            let ended = thread.join().ok().flatten().unwrap_or(Err(Error::Fatal));
            result = result.and(ended);
        }
        result
    })
}

/// Runs the program of a process, and waits until those of all have ended.
///
/// # Errors
///
/// [`Error::Fatal`] if they did not end in the same superstep, or some failed.
pub(crate) fn run_process(process: Process, program: Program<'_>) -> Result<()> {
    let context = Context::new(process);
    program(&context);
    context.into_process().leave()
}

/// Gate before which threads wait until all could be started.
#[derive(Default)]
struct Gate {
    is_open: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Lets the threads through, or makes them end.
    fn open(&self, go: bool) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.changed.notify_all();
    }

    /// Waits, and returns `true` if the thread is to go on.
    fn wait(&self) -> bool {
        let mut is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *is_open {
                Some(go) => return go,
                None => {
                    is_open = self.changed.wait(is_open).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
