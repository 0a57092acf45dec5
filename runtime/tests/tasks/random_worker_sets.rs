//! Random programs on several sets of workers: whatever makes a task ready, wherever, its body and what
//! follows each of its waits run on a worker of the set of its group.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::channel::oneshot;
use proptest::prelude::*;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime};

use crate::common::{self, Log, POLICIES};
use crate::worker_sets::{groups, runtime, worker, workers_of};

const MS: Duration = Duration::from_millis(1);

/// Ways in which a task may become ready and go on.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Inline,
    Urgent(i32),
    Yielding,
    Sleeping,
    /// Awaits a task of the next set.
    Awaiting,
    /// Ends when a task of the next set has ended.
    Pending,
    WithChildren,
    Main,
    Idle,
    Iterated,
}

/// Thread that spawns a task.
#[derive(Clone, Copy, Debug)]
enum Spawner {
    Outside,
    /// A task of this set, or the next one modulo their number.
    Set(usize),
}

/// A task: its set, the sets whose arrays it uses, and of those whether it writes them.
#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    spawner: Spawner,
    set: usize,
    uses: [(usize, bool); 2],
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Plain),
        Just(Kind::Inline),
        (-2..3i32).prop_map(Kind::Urgent),
        Just(Kind::Yielding),
        Just(Kind::Sleeping),
        Just(Kind::Awaiting),
        Just(Kind::Pending),
        Just(Kind::WithChildren),
        Just(Kind::Main),
        Just(Kind::Idle),
        Just(Kind::Iterated),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let spawner = prop_oneof![Just(Spawner::Outside), (0..3usize).prop_map(Spawner::Set)];
    let uses = [(0..3usize, any::<bool>()), (0..3usize, any::<bool>())];
    let step = (kinds(), spawner, 0..3usize, uses);
    let step = step.prop_map(|(kind, spawner, set, uses)| Step { kind, spawner, set, uses });
    proptest::collection::vec(step, 1..60)
}

/// The state of a random program.
#[derive(Clone)]
struct Program {
    groups: Arc<Vec<Group>>,
    arrays: Arc<Vec<Array<u64>>>,
    sets: Arc<Vec<Range<usize>>>,
    /// Bodies that have run outside their set.
    strays: Log<String>,
}

impl Program {
    fn note(&self, set: usize, what: &str) {
        if !self.sets[set].contains(&worker()) {
            self.strays.add(format!("{what} of set {set} on worker {}", worker()));
        }
    }

    fn spawn(&self, step: &Step) -> Result<(), Error> {
        let sets = self.groups.len();
        let (set, next) = (step.set % sets, (step.set + 1) % sets);
        let group = &self.groups[set];
        let me = self.clone();
        let [one, other] = step.uses.map(|(set, _)| self.arrays[set % sets].all());
        let is_same = step.uses[0].0 % sets == step.uses[1].0 % sets;
        let task = group.task("task");
        let plain = move |what: &'static str| move || me.note(set, what);
        let me = self.clone();
        match step.kind {
            Kind::Plain | Kind::Inline | Kind::Urgent(_) => {
                let task = match step.kind {
                    Kind::Inline => task.inline(),
                    Kind::Urgent(priority) => task.priority(priority),
                    _ => task,
                };
                let run = plain("a body");
                match step.uses.map(|(_, writes)| writes) {
                    _ if is_same => task.inout(&one).spawn(move |_| run()),
                    [false, false] => task.input(&one).input(&other).spawn(move |_, _| run()),
                    [false, true] => task.input(&one).inout(&other).spawn(move |_, _| run()),
                    [true, false] => task.inout(&one).input(&other).spawn(move |_, _| run()),
                    [true, true] => task.inout(&one).inout(&other).spawn(move |_, _| run()),
                }
            }
            Kind::Yielding => task.inout(&one).spawn_async(move |guard| async move {
                me.note(set, "an async body");
                yield_now().await;
                me.note(set, "what follows a yield");
                drop(guard);
            }),
            Kind::Sleeping => task.inout(&one).spawn_async(move |guard| async move {
                me.groups[next].wait_for(MS / 10).await;
                me.note(set, "what follows a timer");
                me.groups[set].wait_for(MS / 10).await;
                me.note(set, "what follows a timer");
                drop(guard);
            }),
            Kind::Awaiting => {
                let (sender, receiver) = oneshot::channel();
                let other = self.clone();
                task.spawn_async(move || async move {
                    receiver.await.unwrap();
                    me.note(set, "what follows a wake-up");
                })?;
                self.groups[next].task("wakes").spawn(move || {
                    other.note(next, "a body");
                    sender.send(()).unwrap();
                })
            }
            Kind::Pending => {
                let event = Arc::new(Mutex::new(None));
                let (kept, taken) = (event.clone(), self.clone());
                let (run, after) = (plain("a body"), self.clone());
                task.inout(&one).spawn(move |_| {
                    run();
                    *kept.lock().unwrap() = Some(PendingEvent::of_current_task().unwrap());
                })?;
                let ends = self.groups[next].task("ends").input(&one);
                ends.spawn(move |_| {
                    taken.note(next, "a body");
                    drop(event.lock().unwrap().take());
                })?;
                group.task("after").inout(&one).spawn(move |_| after.note(set, "a successor"))
            }
            Kind::WithChildren => task.spawn_async(move || async move {
                me.note(set, "a parent");
                let children = Children::of_current_task().unwrap();
                for _ in 0..3 {
                    let child = me.clone();
                    let body = move || child.note(set, "a child");
                    children.task("child").spawn(body).unwrap();
                }
                children.wait().await.unwrap();
                me.note(set, "what follows its children");
            }),
            Kind::Main => {
                let waits = self.groups[next].clone();
                let main = async move {
                    me.note(set, "a main");
                    waits.wait_for(MS / 10).await;
                    me.note(set, "the rest of a main");
                };
                group.spawn_main("main", main).map(drop)
            }
            Kind::Idle => task.spawn_async(move || async move {
                let polled = me.clone();
                me.groups[set].idle(MS).await;
                me.note(set, "what follows idleness");
                let polls = Mutex::new(0);
                let poll = move || {
                    polled.note(set, "a poll");
                    let mut polls = polls.lock().unwrap();
                    *polls += 1;
                    (*polls > 2).then_some(())
                };
                me.groups[set].idle_until(MS, poll).await;
                me.note(set, "what follows polls");
            }),
            Kind::Iterated => group.iterate(3, |iteration| {
                for _ in 0..4 {
                    let run = self.clone();
                    let task = iteration.task("step").inout(&self.arrays[set].all());
                    task.spawn(move |_| run.note(set, "a replayed body"))?;
                }
                Ok(())
            }),
        }
    }
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Runs a program on sets of workers. Returns the bodies that have run outside their set.
fn strays_of(steps: &[Step], runtime: Runtime) -> Vec<String> {
    let groups = groups(&runtime);
    let arrays = groups.iter().map(|group| Array::new(group, vec![0; 4], 2).unwrap()).collect();
    let sets = (0..groups.len()).map(|set| workers_of(&runtime, set)).collect();
    let strays = Log::new();
    let program = Program {
        groups: Arc::new(groups),
        arrays: Arc::new(arrays),
        sets: Arc::new(sets),
        strays: strays.clone(),
    };
    for step in steps {
        match step.spawner {
            Spawner::Outside => program.spawn(step).unwrap(),
            Spawner::Set(set) => {
                let (step, spawner) = (step.clone(), program.clone());
                let group = &program.groups[set % program.groups.len()];
                group.task("spawner").spawn(move || spawner.spawn(&step).unwrap()).unwrap();
            }
        }
    }
    drop(program);
    runtime.shut_down().unwrap();
    strays.take()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

    #[test]
    fn all_tasks_of_a_group_run_on_workers_of_its_set(
        steps in steps(),
        (workers, sets) in prop_oneof![Just((2, 2)), Just((3, 3)), Just((4, 2)), Just((5, 2))],
        policy in 0..POLICIES.len(),
    ) {
        let _watchdog = common::watchdog();
        let strays = strays_of(&steps, runtime(workers, sets, POLICIES[policy]));
        prop_assert!(strays.is_empty(), "{strays:?}");
    }
}
