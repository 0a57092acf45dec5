//! Recording of events in a trace, of workers and of threads outside.
#![allow(unsafe_code, reason = "follows the group pointer of the task that runs")]

use talpf_primitives::Ordering;
use talpf_traces::{Event, LabelId, State, ValueKind};

use super::shared::Shared;
use super::trace_state::SliceBegin;
use super::virtual_time::CoreStreams;
use super::worker::Worker;
use crate::group::GroupInner;
use crate::record::{Label, Phase, RecordId, Role, record};

/// Time between records of levels.
const LEVELS_NS: u64 = 40_000;

impl Worker {
    #[inline]
    pub(super) fn trace(&self, event: impl FnOnce(u64) -> Event) {
        if self.is_traced {
            let now_ns = self.shared.clock.now_ns();
            // Code of the program, which may record another event.
            let event = event(now_ns);
            self.record(now_ns, || event);
        }
    }

    /// Records the event that `event` creates. As an argument the event would be put together in memory, piece
    /// by piece, and copied at once, which waits for all of these stores.
    #[inline(always)]
    fn record(&self, now_ns: u64, event: impl FnOnce() -> Event) {
        if let Some(stream) = &mut *self.stream.borrow_mut() {
            stream.record(now_ns, event());
        } else if let Some(streams) = &self.core_streams {
            streams.record(now_ns, event());
        }
    }

    /// Notes that a virtual core is kept by a task from now on.
    pub(super) fn note_kept(&self, task: RecordId, core: u32) {
        if let Some(streams) = &self.core_streams {
            streams.occupy(self.group_number(task), core, self.shared.clock.now_ns());
        }
    }

    /// Notes that a task which has kept a virtual core since a time runs next, and gives it back.
    pub(super) fn note_run(&self, task: RecordId, core: u32, began_ns: u64) {
        if let Some(streams) = &self.core_streams {
            let times = began_ns..self.shared.clock.now_ns();
            streams.run_kept(self.group_number(task), core, times);
        }
    }

    /// Notes that a task runs next on a free virtual core, for no time.
    pub(super) fn note_short_run(&self, task: RecordId, core: u32) {
        if let Some(streams) = &self.core_streams {
            streams.run_free(self.group_number(task), core);
        }
    }

    /// Notes that a task runs next beside those of virtual cores, from now on.
    pub(super) fn note_inline_run(&self) {
        if let Some(streams) = &self.core_streams {
            streams.take_began();
        }
    }

    /// Returns the number of the group of a task that is not complete.
    fn group_number(&self, task: RecordId) -> u32 {
        // SAFETY: a task that is not complete keeps its group.
        unsafe { GroupInner::of_live_task(record(task)) }.number()
    }

    /// Begins a slice of `task`, whose body has not been entered yet.
    #[cold]
    pub(super) fn begin_slice(&self, task: RecordId) -> SliceBegin {
        let starts = record(task).state.phase().1 == Phase::Created;
        let began_ns = self.core_streams.as_ref().and_then(CoreStreams::take_began);
        SliceBegin { began_ns: began_ns.unwrap_or_else(|| self.shared.clock.now_ns()), starts }
    }

    /// Records the slice of `task`, which ends.
    #[cold]
    pub(super) fn end_slice(&self, task: RecordId, begin: SliceBegin) {
        let traced = record(task);
        if traced.role() == Role::Service {
            // A service runs thousands of times in vain: shown as a state of the worker.
            return;
        }
        let number = traced.number(task);
        // SAFETY: the task has just left its body, so its unit is there.
        let group = unsafe { GroupInner::of_live_task(traced) };
        let label = self.label_id(traced.label());
        let SliceBegin { began_ns, starts } = begin;
        let now_ns = self.shared.clock.now_ns();
        let in_group = group.number();
        self.record(now_ns, || Event::task_slice(in_group, number, label, began_ns, starts));
        let noted = &self.slot().traced_group;
        if noted.load(Ordering::Relaxed) != group.number() {
            noted.store(group.number(), Ordering::Relaxed);
        }
        if now_ns.saturating_sub(self.trace_state.levels_ns.get()) >= LEVELS_NS {
            self.record_levels(now_ns, group);
        }
    }

    /// Records how many tasks are ready at this worker, and how many of `group` are not complete.
    fn record_levels(&self, now_ns: u64, group: &GroupInner) {
        self.trace_state.levels_ns.set(now_ns);
        if self.core_streams.is_none() {
            let ready = self.slot().queued() as i64;
            self.record(now_ns, || Event::value(group.number(), ValueKind::TasksReady, ready));
        }
        let not_done = group.outstanding() as i64;
        self.record(now_ns, || Event::value(group.number(), ValueKind::TasksNotDone, not_done));
    }

    /// Returns the trace's number of a label.
    fn label_id(&self, label: Label) -> LabelId {
        let last = self.trace_state.label.get();
        if let Some((_, id)) = last.filter(|(last, _)| *last == label) {
            return id;
        }
        let recorder = self.shared.config.recorder.as_ref();
        let number_of = |label: Label| {
            recorder.map_or(LabelId::UNNAMED, |recorder| recorder.label(label.text()))
        };
        let id = *self.labels.borrow_mut().entry(label).or_insert_with(|| number_of(label));
        self.trace_state.label.set(Some((label, id)));
        id
    }

    /// Performs `action`, which the trace shows as a state of the worker.
    pub(super) fn in_state<R>(&self, state: State, action: impl FnOnce() -> R) -> R {
        if !self.is_traced || state == State::Polling && self.polls() {
            return action();
        }
        let began_ns = self.shared.clock.now_ns();
        let result = action();
        self.trace(|_| Event::StateSlice { state, began_ns });
        result
    }

    /// Returns `true` between [`begin_polls`](Self::begin_polls) and
    /// [`end_polls`](Self::end_polls).
    fn polls(&self) -> bool {
        self.trace_state.polls_since_ns.get().is_some()
    }

    /// Notes that an idle worker polls: the trace shows what follows as one state, as thousands of
    /// polls may come one after another.
    pub(super) fn begin_polls(&self) {
        if self.is_traced && !self.polls() {
            self.trace_state.polls_since_ns.set(Some(self.shared.clock.now_ns()));
        }
    }

    /// Records the polls of an idle worker, which have ended at `now_ns`, if there were any.
    pub(super) fn end_polls(&self, now_ns: u64) {
        if let Some(began_ns) = self.trace_state.polls_since_ns.take() {
            self.record(now_ns, || Event::StateSlice { state: State::Polling, began_ns });
        }
    }

    /// Notes that an idle time begins, or goes on after `is_new` no longer holds: the trace shows the
    /// smallest number of tasks of the same group that were ready at other workers.
    pub(super) fn note_ready_at_others(&self, is_new: bool) {
        let noted = &self.trace_state.ready_at_others;
        if !self.is_traced || (!is_new && noted.get() == 0) {
            return;
        }
        let group = self.slot().traced_group.load(Ordering::Relaxed);
        let slots = self.shared.slots.iter().enumerate();
        let others = slots.filter(|(index, slot)| {
            *index != self.index && slot.traced_group.load(Ordering::Relaxed) == group
        });
        let ready = others.map(|(_, slot)| slot.queued()).sum::<usize>() as u32;
        noted.set(if is_new { ready } else { noted.get().min(ready) });
    }

    /// Ends an idle time at `now_ns`, in the counts and in the trace.
    pub(super) fn end_idle(&self, now_ns: u64) {
        self.end_polls(now_ns);
        let began_ns = self.meter().end_idle(now_ns);
        if self.is_traced {
            let ready = self.trace_state.ready_at_others.get();
            self.record(now_ns, || Event::Idle { began_ns, ready });
        }
    }
}

impl Shared {
    /// Records an event on a thread outside, if the run is traced.
    #[cold]
    pub(super) fn trace_outside(&self, event: impl FnOnce(u64) -> Event) {
        if let Some(recorder) = &self.config.recorder {
            let now_ns = self.clock.now_ns();
            // Code of the program, which may record another event.
            let event = event(now_ns);
            self.outside_trace.record(recorder, now_ns, event);
        }
    }

    /// Gives the records of threads outside to the recorder, and drops later ones.
    pub(crate) fn end_outside_trace(&self) {
        self.outside_trace.end();
    }
}
