//! Life of processes, watched apart from their data: who is stopped, or is on a machine that cannot be
//! reached, sends nothing and says nothing about it.
//!
//! A thread of each process shows life every [`BEAT`], and notes who else has. It does so whatever the
//! workers compute. Processes of one machine show life by a word of the memory that they share; others by
//! empty packets on connections of their own, as data that wait to be read would delay them. Who has
//! shown no life for long enough is given up: the rail then reports it as lost.
//!
//! Time is counted in beats of this process, so that one that was stopped itself accuses nobody as it
//! goes on.

use std::{
    io,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use crate::{Rail, ShmRail, SocketWire, Wire};

/// Time between two signs of life.
const BEAT: Duration = Duration::from_millis(100);

/// The state of the thread.
pub(super) struct Life {
    /// Rail that joins the processes. The thread ends once nobody else has it.
    rail: Weak<dyn Rail>,
    /// Rail within the machine, with the processes of its numbers.
    machine: Option<(Weak<ShmRail>, Box<[u32]>)>,
    /// Connections to all other processes.
    wire: Option<SocketWire>,
    watched: Box<[Watched]>,
    /// Most beats without a sign of life.
    most: u64,
}

/// A process, as the thread sees it.
#[derive(Clone, Default)]
struct Watched {
    /// Signs of life by the word of the process.
    signs: u64,
    /// Beats since the last sign.
    silent: u64,
    is_given_up: bool,
}

impl Life {
    /// Makes the state of a thread that gives a process up after so long without a sign of life.
    pub(super) fn new(
        rail: &Arc<dyn Rail>,
        machine: Option<(&Arc<ShmRail>, &[u32])>,
        wire: Option<SocketWire>,
        timeout: Duration,
    ) -> Self {
        Self {
            rail: Arc::downgrade(rail),
            machine: machine.map(|(rail, members)| (Arc::downgrade(rail), members.into())),
            wire,
            watched: vec![Watched::default(); rail.processes() as usize].into(),
            most: timeout.as_nanos().div_ceil(BEAT.as_nanos()).try_into().unwrap_or(u64::MAX),
        }
    }

    /// Starts the thread.
    pub(super) fn start(mut self) -> io::Result<()> {
        let beats = move || {
            while self.beat() {
                thread::sleep(BEAT);
            }
        };
        thread::Builder::new().name("verbs-life".to_owned()).spawn(beats).map(drop)
    }

    /// Shows life, notes that of others, and gives up who shows none. Returns `false` once nobody has
    /// the rail.
    fn beat(&mut self) -> bool {
        let Some(rail) = self.rail.upgrade() else { return false };
        let own = rail.process();
        self.watched.iter_mut().for_each(|process| process.silent += 1);
        self.watched[own as usize].silent = 0;
        if let Some(wire) = &self.wire {
            for process in (0..wire.processes()).filter(|process| *process != own) {
                wire.send(process, Vec::new());
            }
            wire.poll(&mut |from, _| self.watched[from as usize].silent = 0);
        }
        if let Some((machine, members)) = &self.machine
            && let Some(machine) = machine.upgrade()
        {
            machine.show_life();
            for (number, process) in (0..).zip(members) {
                let watched = &mut self.watched[*process as usize];
                let signs = machine.signs_of_life(number);
                if signs != watched.signs {
                    (watched.signs, watched.silent) = (signs, 0);
                }
            }
        }
        for (process, watched) in (0..).zip(&mut self.watched) {
            if watched.silent > self.most && !watched.is_given_up {
                watched.is_given_up = true;
                rail.give_up(process);
            }
        }
        true
    }
}
