//! Threads of a program that become processes of a team.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::launch::{self, Program};
use crate::process::Process;
use crate::processors::processors;
use crate::team::Team;

/// Threads that will hook together.
struct Group {
    /// Process numbers that are taken.
    taken: Mutex<Vec<bool>>,
    /// Team of the latest hook.
    teams: Mutex<(u64, Option<Arc<Team>>)>,
}

/// Place of a thread in a group.
pub(crate) struct Member {
    group: Arc<Group>,
    pid: usize,
    processes: usize,
    /// Number of hooks of this thread.
    hooks: AtomicU64,
}

/// Groups by number of threads, that some threads have not joined yet.
static FORMING: Mutex<Option<HashMap<usize, Vec<Arc<Group>>>>> = Mutex::new(None);

impl Member {
    /// Joins the first group of so many threads that has nobody with this number. The threads of one group may
    /// come in any order, and none waits here.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if there is no memory for so many.
    pub(crate) fn join(pid: usize, processes: usize) -> Result<Self> {
        let mut forming = FORMING.lock();
        let groups = forming.get_or_insert_default().entry(processes).or_default();
        let free = groups.iter().position(|group| !group.taken.lock()[pid]);
        let index = match free {
            Some(index) => index,
            None => {
                let mut taken = Vec::new();
                taken.try_reserve_exact(processes).map_err(|_| Error::OutOfMemory)?;
                taken.resize(processes, false);
                let teams = Mutex::new((0, None));
                groups.push(Arc::new(Group { taken: Mutex::new(taken), teams }));
                groups.len() - 1
            }
        };
        let group = Arc::clone(&groups[index]);
        let is_complete = {
            let mut taken = group.taken.lock();
            taken[pid] = true;
            taken.iter().all(|taken| *taken)
        };
        if is_complete {
            groups.remove(index);
        }
        Ok(Member { group, pid, processes, hooks: AtomicU64::new(0) })
    }

    /// Runs a program on the threads of the group.
    ///
    /// # Errors
    ///
    /// Errors of [`launch::run_process`], and [`Error::OutOfMemory`].
    pub(crate) fn hook(&self, program: Program<'_>) -> Result<()> {
        let number = self.hooks.fetch_add(1, Ordering::Relaxed) + 1;
        let team = self.team(number)?;
        let share = (processors() as usize / self.processes).max(1);
        launch::run_process(Process::new(team, self.pid, share as u32)?, program)
    }

    /// Returns the team of a hook, which the first thread makes. A thread leaves its hook when all have joined
    /// it, so two hooks never overlap.
    fn team(&self, number: u64) -> Result<Arc<Team>> {
        let mut teams = self.group.teams.lock();
        match &mut *teams {
            (latest, Some(team)) if *latest == number => Ok(Arc::clone(team)),
            teams => {
                let team = Team::new(self.processes)?;
                *teams = (number, Some(Arc::clone(&team)));
                Ok(team)
            }
        }
    }
}
