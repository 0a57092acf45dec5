//! Strict reader of ovni's streams, written from its specification and the rules of its emulator: what that
//! refuses fails here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Contents of a folder of streams.
#[derive(Debug, Default)]
pub(crate) struct Emulated {
    /// Number of streams.
    pub(crate) streams: usize,
    /// Tasks of all processes.
    pub(crate) tasks: usize,
    /// Bodies of tasks executed, and those resumed.
    pub(crate) executed: usize,
    pub(crate) resumed: usize,
    /// Time in bodies by label of the type.
    pub(crate) type_ns: BTreeMap<String, u64>,
    /// Time that threads rest.
    pub(crate) resting_ns: u64,
    /// Time that threads are paused.
    pub(crate) paused_ns: u64,
    /// Time in marks by title and label.
    pub(crate) mark_ns: BTreeMap<(String, String), u64>,
    /// Machines, as names of looms.
    pub(crate) looms: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Event {
    clock: u64,
    name: String,
    payload: Vec<u8>,
    is_jumbo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum BodyState {
    Running,
    Paused,
    Dead,
}

#[derive(Debug)]
struct Task {
    kind: u32,
    is_parallel: bool,
    bodies: HashMap<u32, (BodyState, usize)>,
}

#[derive(Debug, Default)]
struct Process {
    types: HashMap<u32, String>,
    tasks: HashMap<u32, Task>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ThreadState {
    Unknown,
    Running,
    Paused,
    Dead,
}

#[derive(Debug)]
struct Thread {
    process: (String, i64),
    cpus: usize,
    state: ThreadState,
    cpu: Option<i32>,
    /// Bodies of the thread, the last of which may run: process-wide task, and body.
    stack: Vec<(u32, u32)>,
    began: u64,
    subsystems: Vec<&'static str>,
    is_resting: bool,
    rests_since: u64,
    paused_since: u64,
    marks: HashMap<i32, Vec<(i64, u64)>>,
}

impl Event {
    fn u32(&self, index: usize) -> u32 {
        u32::from_ne_bytes(self.payload[index * 4..index * 4 + 4].try_into().unwrap())
    }
}

/// Reads a folder as the emulator does: events of all streams by clock. Of equal clocks those of the stream
/// that comes last in `order` come first, for which the emulator promises nothing.
pub(crate) fn emulate(folder: &Path, order: fn(&mut Vec<PathBuf>)) -> Emulated {
    let mut streams = Vec::new();
    find_streams(folder, &mut streams);
    order(&mut streams);
    let metadata: Vec<Value> = streams
        .iter()
        .map(|path| serde_json::from_slice(&fs::read(path.join("stream.json")).unwrap()).unwrap())
        .collect();
    let mut cpus: HashMap<String, BTreeMap<i64, i64>> = HashMap::new();
    let mut titles: HashMap<i32, (String, Value)> = HashMap::new();
    let mut threads = Vec::new();
    let mut tids = BTreeSet::new();
    let mut found = Emulated { streams: streams.len(), ..Emulated::default() };
    for (path, json) in streams.iter().zip(&metadata) {
        assert_eq!(json["version"], 3);
        let ovni = &json["ovni"];
        assert_eq!((&ovni["part"], &ovni["finished"]), (&"thread".into(), &1.into()));
        assert!(ovni["lib"]["version"].is_string() && ovni["lib"]["commit"].is_string());
        assert_eq!(ovni["require"]["ovni"], "1.1.0");
        assert_eq!(ovni["require"]["nosv"], "2.3.0");
        assert!(ovni["app_id"].as_i64().unwrap() > 0);
        let (rank, ranks) = (ovni["rank"].as_i64().unwrap(), ovni["nranks"].as_i64().unwrap());
        assert!((0..ranks).contains(&rank));
        let loom = ovni["loom"].as_str().unwrap().to_owned();
        let [pid, tid] = ["pid", "tid"].map(|key| ovni[key].as_i64().unwrap());
        assert!(tids.insert((loom.clone(), tid)), "thread {tid} twice");
        let place = format!("loom.{loom}/proc.{pid}/thread.{tid}");
        assert!(path.ends_with(&place), "{} is not {place}", path.display());
        for cpu in ovni["loom_cpus"].as_array().unwrap() {
            let of_loom = cpus.entry(loom.clone()).or_default();
            let other =
                of_loom.insert(cpu["index"].as_i64().unwrap(), cpu["phyid"].as_i64().unwrap());
            assert_eq!(other, None, "a cpu twice");
        }
        for (number, mark) in ovni["mark"].as_object().into_iter().flatten() {
            let number = number.parse().unwrap();
            assert!((0..100).contains(&number) && mark["chan_type"] == "stack");
            let labels = mark["labels"].as_object().unwrap();
            assert!(labels.keys().all(|value| value.parse::<i64>().unwrap() != 0));
            assert!(labels.values().all(|label| label.as_str().unwrap().len() < 512));
            let title = mark["title"].as_str().unwrap().to_owned();
            assert!(titles.insert(number, (title, mark["labels"].clone())).is_none());
        }
        found.looms.insert(loom.clone());
        threads.push(Thread {
            process: (loom, pid),
            cpus: 0,
            state: ThreadState::Unknown,
            cpu: None,
            stack: Vec::new(),
            began: 0,
            subsystems: Vec::new(),
            is_resting: false,
            rests_since: 0,
            paused_since: 0,
            marks: HashMap::new(),
        });
    }
    for of_loom in cpus.values() {
        assert!(of_loom.keys().copied().eq(0..of_loom.len() as i64), "{of_loom:?}");
    }
    for thread in &mut threads {
        thread.cpus = cpus[&thread.process.0].len();
    }

    let events: Vec<Vec<Event>> =
        streams.iter().map(|path| events(&fs::read(path.join("stream.obs")).unwrap())).collect();
    let mut next = vec![0; events.len()];
    let mut processes: HashMap<(String, i64), Process> = HashMap::new();
    let first = |next: &[usize]| {
        let clocks = (0..events.len()).filter(|stream| next[*stream] < events[*stream].len());
        clocks.min_by_key(|stream| (events[*stream][next[*stream]].clock, usize::MAX - stream))
    };
    while let Some(stream) = first(&next) {
        let event = &events[stream][next[stream]];
        next[stream] += 1;
        let thread = &threads[stream];
        if event.name == "OHx" {
            let cpu = event.u32(0) as i32;
            assert!((0..thread.cpus as i32).contains(&cpu), "cpu {cpu}");
            let loom = &thread.process.0;
            let same = |other: &Thread| other.process.0 == *loom && other.cpu == Some(cpu);
            assert!(!threads.iter().any(same), "two threads on cpu {cpu}");
        }
        let process = processes.entry(thread.process.clone()).or_default();
        threads[stream].take(event, process, &titles, &mut found);
    }
    for thread in &threads {
        assert_eq!(thread.state, ThreadState::Dead, "a thread does not end");
        assert!(thread.stack.is_empty(), "bodies that do not end: {:?}", thread.stack);
        assert!(thread.subsystems.is_empty(), "{:?}", thread.subsystems);
        assert!(thread.marks.values().all(Vec::is_empty), "marks that do not end");
    }
    let bodies = processes.values().flat_map(|process| process.tasks.values());
    assert!(bodies.clone().all(|task| !task.bodies.is_empty()), "a task without a body");
    found.tasks = bodies.count();
    found
}

fn find_streams(folder: &Path, streams: &mut Vec<PathBuf>) {
    if folder.join("stream.json").exists() {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
        return streams.push(folder.to_owned());
    }
    let mut inside: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    assert!(!inside.is_empty(), "{} is empty", folder.display());
    inside.iter().for_each(|folder| find_streams(folder, streams));
}

fn events(mut bytes: &[u8]) -> Vec<Event> {
    let mut take = |count: usize| {
        assert!(bytes.len() >= count, "an event is incomplete");
        let (taken, rest) = bytes.split_at(count);
        bytes = rest;
        (taken, rest.is_empty())
    };
    assert_eq!(take(4).0, b"ovni");
    let (version, mut is_end) = take(4);
    assert_eq!(version, 1_u32.to_ne_bytes());
    let mut events: Vec<Event> = Vec::new();
    while !is_end {
        let (head, _) = take(4);
        let (flags, name) = (head[0], String::from_utf8(head[1..].to_vec()).unwrap());
        let (clock, end) = take(8);
        let clock = u64::from_ne_bytes(clock.try_into().unwrap());
        is_end = end;
        let size = match flags & 0xf {
            0 => 0,
            size => usize::from(size) + 1,
        };
        let mut payload = Vec::new();
        if size > 0 {
            let (taken, end) = take(size);
            (payload, is_end) = (taken.to_vec(), end);
        }
        let is_jumbo = match flags >> 4 {
            0 => false,
            1 => true,
            flags => panic!("flags {flags}"),
        };
        if is_jumbo {
            assert_eq!(size, 4);
            let size = u32::from_ne_bytes(payload.try_into().unwrap());
            let (taken, end) = take(size as usize);
            (payload, is_end) = (taken.to_vec(), end);
        }
        assert!(events.last().is_none_or(|event| event.clock <= clock), "the clock goes back");
        events.push(Event { clock, name, payload, is_jumbo });
    }
    events
}

impl Thread {
    fn take(
        &mut self,
        event: &Event,
        process: &mut Process,
        titles: &HashMap<i32, (String, Value)>,
        found: &mut Emulated,
    ) {
        let Event { clock, name, payload, is_jumbo } = event;
        assert_eq!(*is_jumbo, name == "VYc");
        let sizes = match name.as_str() {
            "OHx" => 16,
            "VTc" | "VTC" | "VTx" | "VTp" | "VTr" | "VTe" => 8,
            "OM[" | "OM]" => 12,
            "VYc" => payload.len(),
            _ => 0,
        };
        assert_eq!(payload.len(), sizes, "{name}");
        if name.starts_with('V') {
            assert_eq!(self.state, ThreadState::Running, "{name} in a thread that does not run");
        }
        match name.as_str() {
            "OHx" => {
                assert_eq!(self.state, ThreadState::Unknown);
                (self.state, self.cpu) = (ThreadState::Running, Some(event.u32(0) as i32));
            }
            "OHp" => {
                assert_eq!(self.state, ThreadState::Running);
                (self.state, self.paused_since) = (ThreadState::Paused, *clock);
            }
            "OHr" => {
                assert_eq!(self.state, ThreadState::Paused);
                self.state = ThreadState::Running;
                found.paused_ns += clock - self.paused_since;
            }
            "OHe" => {
                assert_eq!(self.state, ThreadState::Running);
                self.state = ThreadState::Dead;
            }
            "OM[" | "OM]" => {
                assert_ne!(self.state, ThreadState::Unknown);
                let value = i64::from_ne_bytes(payload[..8].try_into().unwrap());
                let mark = event.u32(2) as i32;
                assert_ne!(value, 0);
                let (title, labels) = &titles[&mark];
                let stack = self.marks.entry(mark).or_default();
                if name == "OM[" {
                    return stack.push((value, *clock));
                }
                let (pushed, since) = stack.pop().unwrap();
                assert_eq!(pushed, value);
                let label = labels.get(value.to_string()).and_then(Value::as_str);
                let label = label.map_or_else(|| value.to_string(), str::to_owned);
                *found.mark_ns.entry((title.clone(), label)).or_default() += clock - since;
            }
            "VHw" => self.subsystems.push("worker"),
            "VHW" => assert_eq!(self.subsystems.pop(), Some("worker")),
            "VPr" | "VPp" => {
                assert_ne!(self.is_resting, name == "VPr", "the same progress twice");
                self.is_resting = name == "VPr";
                if self.is_resting {
                    self.rests_since = *clock;
                } else {
                    found.resting_ns += clock - self.rests_since;
                }
            }
            "VYc" => {
                let label = payload[4..].strip_suffix(b"\0").unwrap();
                assert!(!label.contains(&0) && label.len() < 512);
                let label = String::from_utf8(label.to_vec()).unwrap();
                assert_ne!(event.u32(0), 0);
                assert_eq!(process.types.insert(event.u32(0), label), None, "a type twice");
            }
            "VTc" | "VTC" => {
                let (id, kind) = (event.u32(0), event.u32(1));
                assert!(process.types.contains_key(&kind), "type {kind} is unknown");
                let is_parallel = name == "VTC";
                let task = Task { kind, is_parallel, bodies: HashMap::new() };
                assert!(id != 0 && process.tasks.insert(id, task).is_none(), "task {id} twice");
            }
            "VTx" | "VTp" | "VTr" | "VTe" => self.body(event, process, found),
            _ => panic!("unknown event {name}"),
        }
    }

    fn body(&mut self, event: &Event, process: &mut Process, found: &mut Emulated) {
        let (id, number) = (event.u32(0), event.u32(1));
        let task = process.tasks.get_mut(&id).expect("a task that was created");
        assert_eq!(task.is_parallel, number != 0, "body {number} of task {id}");
        let here = std::ptr::from_ref(self) as usize;
        let before = task.bodies.get(&number).copied();
        let after = match event.name.as_bytes()[2] {
            b'x' => {
                assert!(
                    before.is_none_or(|(state, _)| state == BodyState::Dead && !task.is_parallel),
                    "body {number} of task {id} is {before:?}"
                );
                if let Some((id, number)) = self.stack.last() {
                    let state = |task: &Task| task.bodies[number].0;
                    let top = if *id == event.u32(0) { state(task) } else { BodyState::Paused };
                    assert_eq!(top, BodyState::Paused);
                }
                self.stack.push((id, number));
                self.subsystems.push("task");
                found.executed += 1;
                BodyState::Running
            }
            step => {
                assert_eq!(self.stack.last(), Some(&(id, number)), "not on top");
                let (state, thread) = before.unwrap();
                assert_eq!(thread, here, "in another thread");
                match step {
                    b'p' => {
                        assert!(state == BodyState::Running && !task.is_parallel);
                        BodyState::Paused
                    }
                    b'r' => {
                        assert_eq!(state, BodyState::Paused);
                        found.resumed += 1;
                        BodyState::Running
                    }
                    _ => {
                        assert_eq!(state, BodyState::Running);
                        self.stack.pop();
                        assert_eq!(self.subsystems.pop(), Some("task"));
                        BodyState::Dead
                    }
                }
            }
        };
        if after == BodyState::Running {
            self.began = event.clock;
        } else {
            let label = process.types[&task.kind].clone();
            *found.type_ns.entry(label).or_default() += event.clock - self.began;
        }
        task.bodies.insert(number, (after, here));
        // A body that runs is the only one of its thread that does.
        let running = self
            .stack
            .iter()
            .filter(|(id, number)| process.tasks[id].bodies[number].0 == BodyState::Running);
        assert!(running.count() <= 1, "a body runs over another that runs");
    }
}
