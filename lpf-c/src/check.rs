//! Checks of what all processes have queued, at the end of a superstep.
//!
//! Each process checks all others where it can, so that none goes on while another one finds a mistake.

use crate::conflict::{Bounds, any_overlap};
use crate::misuse::Misuse;
use crate::process::Process;
use crate::reduction::Snapshot;
use crate::view::View;

impl Process {
    /// Checks histories of registers, numbers of messages, and calls of reductions.
    pub(crate) fn check(&self, registered: bool) -> Result<(), Misuse> {
        let view = View::new(&self.team, self.superstep);
        let members = &self.team.members;
        let history = self.register.history();
        if registered && members.iter().any(|member| member.history(self.superstep) != history) {
            return Err(Misuse::RegistersDiffer);
        }
        for pid in 0..self.team.size() {
            self.check_count(&view, pid)?;
            self.check_reductions(&view, pid)?;
        }
        Ok(())
    }

    /// Checks the number of messages from and to a process. One to itself takes two places.
    fn check_count(&self, view: &View<'_>, pid: usize) -> Result<(), Misuse> {
        let queue = view.queue(pid);
        let (sent, own) = (queue.sent(), queue.sent_to(pid));
        let received = (0..self.team.size()).map(|other| view.queue(other).sent_to(pid)).sum();
        let limit = self.team.members[pid].limit();
        match sent.max(received) + own > limit {
            true => Err(Misuse::TooManyMessages { pid, sent, received, own, limit }),
            false => Ok(()),
        }
    }

    /// Checks that this process takes part in the reductions that another one has called.
    fn check_reductions(&self, view: &View<'_>, pid: usize) -> Result<(), Misuse> {
        let own = view.queue(self.pid);
        let is_missing = |snapshot: &Snapshot| {
            let call = snapshot.call;
            call.selection.index(self.pid as u32).is_some()
                && !own.snapshots.iter().any(|own| own.call == call)
        };
        match view.queue(pid).snapshots.iter().any(is_missing) {
            true => Err(Misuse::CollectiveMismatch),
            false => Ok(()),
        }
    }

    /// Finds memory of this process that puts read while it is written, or that gets read while gets write
    /// it. Gets read what puts overwrite before they do. `written` are the bounds of what was put here.
    pub(crate) fn check_conflicts(&self, written: Bounds, gets: bool) -> Result<(), Misuse> {
        let view = View::new(&self.team, self.superstep);
        let processes = 0..self.team.size();
        let own = view.queue(self.pid);
        let got = || own.gets.all().iter().map(|message| (message.near(), message.size));
        if !self.put_sources.are_apart(written.union(self.get_destinations)) {
            let sizes = own.puts.all().iter().map(|message| message.size);
            let reads = self.sources.iter().copied().zip(sizes);
            let arriving = processes.clone().flat_map(|process| {
                let puts = view.queue(process).puts.chain(self.pid);
                puts.map(|message| (message.far, message.size))
            });
            if any_overlap(reads, arriving.chain(got())) {
                return Err(Misuse::ReadWriteConflict);
            }
        }
        if !gets || own.gets.len() == 0 {
            return Ok(());
        }
        let leaving = || {
            processes.clone().flat_map(|process| {
                let gets = view.queue(process).gets.chain(self.pid);
                gets.map(|message| (message.far, message.size))
            })
        };
        let mut read = Bounds::default();
        leaving().for_each(|(at, size)| read.add(at, size));
        match !read.are_apart(self.get_destinations) && any_overlap(leaving(), got()) {
            true => Err(Misuse::ReadWriteConflict),
            false => Ok(()),
        }
    }
}
