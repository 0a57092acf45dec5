//! Registered memory: a stack, in which the latest registration of an address counts.

use super::error::{BspError, BspResult};
use crate::memory::Address;

/// Change of the registrations, from the next superstep on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Push { number: u64, address: Address, size: usize },
    Pop { number: u64 },
}

/// Memory that all processes have registered together.
#[derive(Debug)]
struct Registration {
    number: u64,
    /// Address and size at each process.
    memory: Vec<(Address, usize)>,
    is_popped: bool,
}

/// Memory that this process has registered in this superstep.
#[derive(Debug)]
struct Pushed {
    number: u64,
    address: Address,
    is_popped: bool,
}

/// Registrations of a process.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    active: Vec<Registration>,
    pushed: Vec<Pushed>,
    /// Number of registrations that were ever made together.
    made: u64,
}

impl Registrations {
    /// Registers memory.
    pub(super) fn push(&mut self, address: Address, size: usize) -> Change {
        let number = self.made + self.pushed.len() as u64;
        self.pushed.push(Pushed { number, address, is_popped: false });
        Change::Push { number, address, size }
    }

    /// Gives up the latest registration of an address, if there is one.
    pub(super) fn pop(&mut self, pid: usize, address: Address) -> Option<Change> {
        let is_pushed = |pushed: &&mut Pushed| pushed.address == address && !pushed.is_popped;
        if let Some(pushed) = self.pushed.iter_mut().rev().find(is_pushed) {
            pushed.is_popped = true;
            return Some(Change::Pop { number: pushed.number });
        }
        let is_active =
            |active: &&mut Registration| active.memory[pid].0 == address && !active.is_popped;
        let active = self.active.iter_mut().rev().find(is_active)?;
        active.is_popped = true;
        Some(Change::Pop { number: active.number })
    }

    /// Returns the memory of process `other` in the latest registration of an address here.
    pub(super) fn find(
        &self,
        pid: usize,
        address: Address,
        other: usize,
    ) -> Option<(Address, usize)> {
        let is_active = |active: &&Registration| active.memory[pid].0 == address;
        self.active.iter().rev().find(is_active).map(|active| active.memory[other])
    }

    /// Applies the changes of all processes, if they match; otherwise none.
    pub(super) fn apply(&mut self, changes: &[&[Change]]) -> BspResult<()> {
        self.pushed.clear();
        let applied = self.apply_matching(changes);
        self.active.iter_mut().for_each(|active| active.is_popped = false);
        applied
    }

    fn apply_matching(&mut self, changes: &[&[Change]]) -> BspResult<()> {
        let pushes = |changes: &[Change]| -> Vec<(u64, Address, usize)> {
            let push = |change: &Change| match *change {
                Change::Push { number, address, size } => Some((number, address, size)),
                Change::Pop { .. } => None,
            };
            changes.iter().filter_map(push).collect()
        };
        let pops = |changes: &[Change]| {
            let pop = |change: &Change| match *change {
                Change::Pop { number } => Some(number),
                Change::Push { .. } => None,
            };
            let mut numbers: Vec<u64> = changes.iter().filter_map(pop).collect();
            numbers.sort_unstable();
            numbers
        };
        let pushed: Vec<_> = changes.iter().map(|changes| pushes(changes)).collect();
        let popped: Vec<_> = changes.iter().map(|changes| pops(changes)).collect();
        if pushed.iter().any(|pushed_here| pushed_here.len() != pushed[0].len()) {
            return Err(BspError::PushregMismatch);
        }
        if popped.iter().any(|popped_here| *popped_here != popped[0]) {
            return Err(BspError::PopregMismatch);
        }
        for (index, (number, ..)) in pushed[0].iter().enumerate() {
            let at = |pushed: &Vec<(u64, Address, usize)>| (pushed[index].1, pushed[index].2);
            let memory = pushed.iter().map(at).collect();
            self.active.push(Registration { number: *number, memory, is_popped: false });
        }
        self.made += pushed[0].len() as u64;
        self.active.retain(|active| popped[0].binary_search(&active.number).is_err());
        Ok(())
    }
}
