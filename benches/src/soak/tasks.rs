//! Runs a random graph and compares every wait, every task and every element with the model.

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

use super::dice::{Dice, mix};
use super::graph::{Fate, Graph, LEN, Manner, Phase, Step, Use, initial};
use super::wrong::{PLANNED, Wrong, compare};

/// What a thread outside has to do.
type Errand = Box<dyn FnOnce() + Send>;

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let config = super::runtime(dice);
    let graph = Graph::draw(dice);
    let runtime = Runtime::new(config)?;
    let (errands, list) = mpsc::channel::<Errand>();
    let outside = thread::spawn(move || list.into_iter().for_each(|errand| errand()));
    let memory = Machine::new(&runtime, &graph, errands)?;
    let mut checked = 0;
    for (number, phase) in graph.phases.iter().enumerate() {
        memory.run(&runtime, phase).map_err(|wrong| Wrong(format!("phase {number}: {wrong}")))?;
        checked += phase.steps.len() as u64;
    }
    drop(memory);
    runtime.shut_down()?;
    outside.join().map_err(|_| Wrong("the thread outside panicked".to_owned()))?;
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

    fn run(&self, runtime: &Runtime, phase: &Phase) -> Result<(), Wrong> {
        if phase.resets {
            self.reset()?;
        }
        let ran: Arc<[AtomicBool]> = phase.steps.iter().map(|_| AtomicBool::new(false)).collect();
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
        for (step, ran) in phase.steps.iter().zip(ran.iter()) {
            if ran.load(Ordering::Relaxed) == (step.fate == Fate::Skipped) {
                return Err(Wrong(format!("should it have run or not: {step:?}")));
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

    /// A task of one group may fail after the wait for another, whose arrays it leaves undefined:
    /// so all groups are waited for twice, and then everything is defined again.
    fn wait(&self, phase: &Phase) -> Result<(), Wrong> {
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
            return Err(Wrong(format!("{left} tasks are left after the waits")));
        }
        if phase.cancels.is_some() {
            return Ok(());
        }
        let expected = phase.failed.iter().map(|failed| failed.then_some(PLANNED));
        match failed.iter().zip(expected).position(|(found, planned)| found.as_deref() != planned) {
            None => Ok(()),
            Some(group) => Err(Wrong(format!("the wait for group {group}: {:?}", failed[group]))),
        }
    }

    fn check(&self, runtime: &Runtime, phase: &Phase) -> Result<(), Wrong> {
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
        for (index, step) in phase.steps.iter().enumerate() {
            cancel(index);
            let (step, ran, errands) = (step.clone(), Arc::clone(ran), self.errands.clone());
            self.spawn(Work { step, index, ran, errands })?;
        }
        cancel(phase.steps.len());
        Ok(())
    }

    fn spawn(&self, work: Work) -> Result<(), Error> {
        let Step { group, priority, inline, manner, uses, .. } = work.step.clone();
        let regions = |mode: Mode| {
            let chosen = uses.iter().filter(move |access| access.mode == mode);
            chosen.map(|access| self.arrays[access.array].region(access.from..access.to))
        };
        let task = self.groups[group].task("step").priority(priority);
        let task = if inline { task.inline() } else { task };
        let task = task.inputs(regions(Mode::In)).outputs(regions(Mode::Out));
        let task = task.inouts(regions(Mode::InOut)).concurrents(regions(Mode::Concurrent));
        let task = task.commutatives(regions(Mode::Commutative));
        let group = self.groups[group].clone();
        match manner {
            Manner::Calls => task.spawn(|reads, outs, changes, shared, turns| {
                work.call(Guards { reads, outs, changes, shared, turns });
            }),
            Manner::Leaves => task.spawn(|reads, outs, changes, shared, turns| {
                work.leave(Guards { reads, outs, changes, shared, turns });
            }),
            _ => task.spawn_async(|reads, outs, changes, shared, turns| {
                work.go_on(group, Guards { reads, outs, changes, shared, turns })
            }),
        }
    }
}

/// The body of a task.
struct Work {
    step: Step,
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
        match self.step.manner {
            Manner::Sleeps => group.wait_for(Duration::from_micros(seed % 50)).await,
            Manner::Woken => {
                let (wake, woken) = oneshot::channel();
                // It outlives the tasks.
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
            match self.step.fate {
                Fate::Runs => {
                    guards.write(&self.step.uses, seed);
                    drop(guards);
                    drop(event);
                }
                // In this order: what depends on the regions must not run.
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
        let seed = guards.read(&self.step.uses, self.step.number);
        if self.step.drops_early {
            guards.reads.clear();
        }
        seed
    }

    fn end(&self, mut guards: Guards, seed: u64) {
        if self.step.fate == Fate::PanicsBeforeWriting {
            std::panic::panic_any(PLANNED);
        }
        guards.write(&self.step.uses, seed);
        match self.step.fate {
            Fate::PanicsAfterWriting => std::panic::panic_any(PLANNED),
            Fate::Reports => drop(fail_current_task(PLANNED)),
            _ => {}
        }
    }
}

/// What a body holds, by mode.
struct Guards {
    reads: Vec<In<AtomicU64>>,
    outs: Vec<Out<AtomicU64>>,
    changes: Vec<InOut<AtomicU64>>,
    shared: Vec<Concurrent<AtomicU64>>,
    turns: Vec<Commutative<AtomicU64>>,
}

/// The uses in order, each with its place among those of its mode.
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
                    // Two that have their turn at once would lose some.
                    let before: Vec<u64> = self.turns[at].iter().map(load).collect();
                    let cells = self.turns[at].iter_mut().zip(before);
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
