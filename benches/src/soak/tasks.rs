//! Run of a random graph that compares every wait, every task and every element with the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use talpf_runtime::{
    Array, Commutative, Concurrent, Error, Group, In, InOut, Mode, Out, PendingEvent, Runtime,
    fail_current_task,
};
use tokio::sync::oneshot;

use super::episode_error::{EpisodeError, PLANNED, compare};
use super::graph::{Fate, Graph, LEN, Manner, Phase, PlannedTask, Use, initial};
use super::rng::{Rng, mix};

/// Work of the thread outside the runtime.
type Errand = Box<dyn FnOnce() + Send>;

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let config = super::runtime(rng);
    let graph = Graph::draw(rng);
    let runtime = Runtime::new(config)?;
    let (errands, list) = mpsc::channel::<Errand>();
    let outside = thread::spawn(move || list.into_iter().for_each(|errand| errand()));
    let memory = Machine::new(&runtime, &graph, errands)?;
    let mut checked = 0;
    for (number, phase) in graph.phases.iter().enumerate() {
        memory
            .run(&runtime, phase)
            .map_err(|wrong| EpisodeError(format!("phase {number}: {wrong}")))?;
        checked += phase.tasks.len() as u64;
    }
    drop(memory);
    runtime.shut_down()?;
    outside.join().map_err(|_| EpisodeError("the thread outside panicked".to_owned()))?;
    Ok(checked)
}

/// Groups and arrays of a graph.
#[derive(Clone)]
struct Machine {
    groups: Vec<Group>,
    arrays: Vec<Array<AtomicU64>>,
    errands: Sender<Errand>,
}

impl Machine {
    fn new(runtime: &Runtime, graph: &Graph, errands: Sender<Errand>) -> Result<Self, Error> {
        let group = |number| runtime.group(format!("group {number}"), number as u32);
        let groups: Vec<Group> = (0..graph.groups).map(group).collect();
        let zeros = || (0..LEN).map(|_| AtomicU64::new(0)).collect();
        let array =
            |shape: &super::graph::Shape| Array::new(&groups[shape.group], zeros(), shape.tile);
        let arrays = graph.arrays.iter().map(array).collect::<Result<_, _>>()?;
        Ok(Machine { groups, arrays, errands })
    }

    fn run(&self, runtime: &Runtime, phase: &Phase) -> Result<(), EpisodeError> {
        if phase.resets {
            self.reset()?;
        }
        let ran: Arc<[AtomicBool]> = phase.tasks.iter().map(|_| AtomicBool::new(false)).collect();
        if phase.from_inside {
            let (machine, phase, ran) = (self.clone(), phase.clone(), Arc::clone(&ran));
            let spawner = async move { machine.spawn_all(&phase, &ran) };
            runtime.block_on(runtime.spawn_main("spawner", spawner)?)???;
        } else {
            self.spawn_all(phase, &ran)?;
        }
        self.wait(phase)?;
        if phase.cancels.is_some() {
            return self.check(runtime, phase);
        }
        for (planned, ran) in phase.tasks.iter().zip(ran.iter()) {
            if ran.load(Ordering::Relaxed) == (planned.fate == Fate::Skipped) {
                return Err(EpisodeError(format!(
                    "a task ran or not, against its plan: {planned:?}"
                )));
            }
        }
        self.check(runtime, phase)
    }

    fn reset(&self) -> Result<(), Error> {
        for (number, array) in self.arrays.iter().enumerate() {
            self.groups[0].task("reset").output(&array.all()).spawn(move |mut cells| {
                for (element, cell) in cells.iter_mut().enumerate() {
                    *cell.get_mut() = initial(number, element);
                }
            })?;
        }
        Ok(())
    }

    /// Waits for all groups twice: a task of one group may fail after the wait for another group
    /// whose arrays it leaves undefined. Afterwards the contents are known.
    fn wait(&self, phase: &Phase) -> Result<(), EpisodeError> {
        let mut failed = vec![None; self.groups.len()];
        for _ in 0..2 {
            for (group, failed) in self.groups.iter().zip(&mut failed) {
                match group.wait_blocking() {
                    Ok(()) => {}
                    Err(Error::TaskFailed(failure)) => {
                        *failed = failure.chain().last().and_then(|first| first.reason.clone());
                    }
                    Err(Error::Cancelled { .. }) if phase.cancels.is_some() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let left: u64 = self.groups.iter().map(Group::outstanding).sum();
        if left > 0 {
            return Err(EpisodeError(format!("{left} tasks outstanding after the waits")));
        }
        if phase.cancels.is_some() {
            return Ok(());
        }
        let expected = phase.failed.iter().map(|failed| failed.then_some(PLANNED));
        match failed.iter().zip(expected).position(|(found, planned)| found.as_deref() != planned) {
            None => Ok(()),
            Some(group) => {
                Err(EpisodeError(format!("wait for group {group} returned {:?}", failed[group])))
            }
        }
    }

    fn check(&self, runtime: &Runtime, phase: &Phase) -> Result<(), EpisodeError> {
        for (number, array) in self.arrays.iter().enumerate() {
            let read = self.groups[0].task("read").input(&array.all());
            let read = read.run(|cells| cells.iter().map(load).collect::<Vec<_>>())?;
            let mut found = runtime.block_on(read)??;
            let expected = &phase.memory[number];
            for (found, _) in found.iter_mut().zip(expected).filter(|(_, e)| e.is_none()) {
                *found = 0;
            }
            let expected: Vec<u64> = expected.iter().map(|cell| cell.unwrap_or(0)).collect();
            compare(format_args!("array {number}"), &found, &expected)?;
        }
        Ok(())
    }

    fn spawn_all(&self, phase: &Phase, ran: &Arc<[AtomicBool]>) -> Result<(), Error> {
        let cancel = |spawned| {
            if let Some((group, _)) = phase.cancels.filter(|(_, before)| *before == spawned) {
                self.groups[group].cancel(PLANNED);
            }
        };
        for (index, planned) in phase.tasks.iter().enumerate() {
            cancel(index);
            let (planned, ran, errands) = (planned.clone(), Arc::clone(ran), self.errands.clone());
            self.spawn(Work { planned, index, ran, errands })?;
        }
        cancel(phase.tasks.len());
        Ok(())
    }

    fn spawn(&self, work: Work) -> Result<(), Error> {
        let PlannedTask { group, priority, inline, manner, uses, .. } = work.planned.clone();
        let regions = |mode: Mode| {
            let chosen = uses.iter().filter(move |access| access.mode == mode);
            chosen.map(|access| self.arrays[access.array].region(access.from..access.to))
        };
        let task = self.groups[group].task("step").priority(priority);
        let task = if inline { task.inline() } else { task };
        let task = task.input(regions(Mode::In)).output(regions(Mode::Out));
        let task = task.inout(regions(Mode::InOut)).concurrent(regions(Mode::Concurrent));
        let task = task.commutative(regions(Mode::Commutative));
        let group = self.groups[group].clone();
        match manner {
            Manner::Calls => task.spawn(|reads, outs, changes, shared, exclusive| {
                work.call(Guards { reads, outs, changes, shared, exclusive });
            }),
            Manner::Leaves => task.spawn(|reads, outs, changes, shared, exclusive| {
                work.leave(Guards { reads, outs, changes, shared, exclusive });
            }),
            _ => task.spawn_async(|reads, outs, changes, shared, exclusive| {
                work.go_on(group, Guards { reads, outs, changes, shared, exclusive })
            }),
        }
    }
}

/// Body of a task.
struct Work {
    planned: PlannedTask,
    index: usize,
    ran: Arc<[AtomicBool]>,
    errands: Sender<Errand>,
}

impl Work {
    fn call(self, mut guards: Guards) {
        let seed = self.begin(&mut guards);
        self.end(guards, seed);
    }

    async fn go_on(self, group: Group, mut guards: Guards) {
        let seed = self.begin(&mut guards);
        match self.planned.manner {
            Manner::Sleeps => group.wait_for(Duration::from_micros(seed % 50)).await,
            Manner::Woken => {
                let (wake, woken) = oneshot::channel();
                // The thread outside outlives the tasks.
                let _ = self.errands.send(Box::new(move || {
                    let _ = wake.send(());
                }));
                let _ = woken.await;
            }
            _ => {
                for _ in 0..1 + seed % 3 {
                    tokio::task::yield_now().await;
                }
            }
        }
        self.end(guards, seed);
    }

    fn leave(self, mut guards: Guards) {
        let seed = self.begin(&mut guards);
        let Ok(event) = PendingEvent::of_current_task() else { return };
        let errands = self.errands.clone();
        let finish = move || {
            match self.planned.fate {
                Fate::Runs => {
                    guards.write(&self.planned.uses, seed);
                    drop(guards);
                    drop(event);
                }
                // In this order: tasks that depend on the regions must not run.
                _ => {
                    event.fail(PLANNED);
                    drop(guards);
                }
            }
        };
        let _ = errands.send(Box::new(finish));
    }

    fn begin(&self, guards: &mut Guards) -> u64 {
        self.ran[self.index].store(true, Ordering::Relaxed);
        let seed = guards.read(&self.planned.uses, self.planned.number);
        if self.planned.drops_early {
            guards.reads.clear();
        }
        seed
    }

    fn end(&self, mut guards: Guards, seed: u64) {
        if self.planned.fate == Fate::PanicsBeforeWriting {
            std::panic::panic_any(PLANNED);
        }
        guards.write(&self.planned.uses, seed);
        match self.planned.fate {
            Fate::PanicsAfterWriting => std::panic::panic_any(PLANNED),
            Fate::Reports => drop(fail_current_task(PLANNED)),
            _ => {}
        }
    }
}

/// Guards of a body, by mode.
struct Guards {
    reads: Vec<In<AtomicU64>>,
    outs: Vec<Out<AtomicU64>>,
    changes: Vec<InOut<AtomicU64>>,
    shared: Vec<Concurrent<AtomicU64>>,
    exclusive: Vec<Commutative<AtomicU64>>,
}

/// Returns the accesses in order, each with its index among those of its mode.
fn placed(uses: &[Use]) -> impl Iterator<Item = (&Use, usize)> {
    let before = |at: usize| uses[..at].iter().filter(|old| old.mode == uses[at].mode).count();
    (0..uses.len()).map(move |at| (&uses[at], before(at)))
}

fn load(cell: &AtomicU64) -> u64 {
    cell.load(Ordering::Relaxed)
}

impl Guards {
    fn read(&self, uses: &[Use], mut seed: u64) -> u64 {
        for (access, at) in placed(uses).filter(|(access, _)| access.reads()) {
            let cells = match access.mode {
                Mode::In => &self.reads[at][..],
                _ => &self.changes[at][..],
            };
            cells.iter().for_each(|cell| seed = mix(seed, load(cell)));
        }
        seed
    }

    fn write(&mut self, uses: &[Use], mut seed: u64) {
        for (access, at) in placed(uses).filter(|(access, _)| access.mode != Mode::In) {
            let mut next = |element: usize| {
                seed = mix(seed, element as u64);
                seed
            };
            match access.mode {
                Mode::Concurrent => {
                    for (element, cell) in (access.from..).zip(self.shared[at].iter()) {
                        cell.fetch_add(next(element), Ordering::Relaxed);
                    }
                }
                Mode::Commutative => {
                    // Two bodies inside the tile lock at once would lose updates.
                    let before: Vec<u64> = self.exclusive[at].iter().map(load).collect();
                    let cells = self.exclusive[at].iter_mut().zip(before);
                    for (element, (cell, before)) in (access.from..).zip(cells) {
                        *cell.get_mut() = before.wrapping_add(next(element));
                    }
                }
                _ => {
                    let cells = match access.mode {
                        Mode::Out => &mut self.outs[at][..],
                        _ => &mut self.changes[at][..],
                    };
                    for (element, cell) in (access.from..).zip(cells) {
                        *cell.get_mut() = next(element);
                    }
                }
            }
        }
    }
}
