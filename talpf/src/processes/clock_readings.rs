//! State of the readings of clocks: questions under way, and readings that are complete.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::task::{Poll, Waker};

use talpf_primitives::Mutex;
use talpf_runtime::Clock;
use talpf_traces::{ClockReading, Recorder};

/// Number of readings: at the start and at the end.
const READINGS: u32 = 2;

/// Clocks of the processes of a run that is traced.
#[derive(Default)]
pub(super) struct ClockReadings {
    /// Recorder and clock of this process, if the run is traced.
    traced: OnceLock<(Recorder, Clock)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of readings that have begun.
    begun: u32,
    /// Number of readings that are complete: of this process, or, in process 0, of all.
    complete: u32,
    exchange: Option<Exchange>,
    waiting: Option<Waker>,
    /// Set once the run has failed.
    has_failed: bool,
}

/// Questions to one process, from the view of process 0.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    process: u32,
    /// Number of the question that is under way, and of the answers that have come.
    pub(super) number: u32,
    asked_ns: u64,
    /// Reading of the shortest round trip.
    pub(super) best: ClockReading,
}

impl Exchange {
    fn new(process: u32, asked_ns: u64) -> Self {
        Self { process, number: 0, asked_ns, best: ClockReading::UNKNOWN }
    }

    /// Takes in an answer, `here_ns`, which has arrived at `now_ns`.
    fn take(&mut self, here_ns: u64, now_ns: u64) {
        self.best = self.best.or_better(ClockReading::of_answer(here_ns, self.asked_ns, now_ns));
        (self.number, self.asked_ns) = (self.number + 1, now_ns);
    }
}

impl ClockReadings {
    /// Sets the recorder and the clock of this process, before others can ask for its time.
    pub(super) fn trace(&self, recorder: &Recorder, clock: &Clock) {
        // Each rank of the process sets the same.
        let _ = self.traced.set((recorder.clone(), clock.clone()));
    }

    pub(super) fn is_traced(&self) -> bool {
        self.traced.get().is_some()
    }

    /// Returns the time of this process, if the run is traced.
    pub(super) fn now_ns(&self) -> Option<u64> {
        self.traced.get().map(|(_, clock)| clock.now_ns())
    }

    /// Notes a reading, if the run is traced.
    fn note(&self, reading: ClockReading) {
        self.traced.get().into_iter().for_each(|(recorder, _)| recorder.note_clock(reading));
    }

    /// Begins the readings with this number, counted from 1, in process 0. Returns `false` if they have
    /// begun, or the run is not traced.
    pub(super) fn begin(&self, number: u32) -> bool {
        let Some(now_ns) = self.now_ns() else { return false };
        let mut state = self.state.lock();
        if state.begun >= number {
            return false;
        }
        state.begun = number;
        drop(state);
        self.note(ClockReading { here_ns: now_ns, there_ns: now_ns, error_ns: 0 });
        true
    }

    /// Begins the questions to a process, in process 0.
    pub(super) fn ask(&self, process: u32) {
        let now_ns = self.now_ns().unwrap_or(0);
        self.state.lock().exchange = Some(Exchange::new(process, now_ns));
    }

    /// Takes in an answer. Returns the questions with it; `None` if nobody has asked for it.
    pub(super) fn take_answer(&self, process: u32, number: u32, time_ns: u64) -> Option<Exchange> {
        let now_ns = self.now_ns()?;
        let mut state = self.state.lock();
        let exchange = state.exchange.as_mut();
        let exchange = exchange.filter(|of| (of.process, of.number) == (process, number))?;
        exchange.take(time_ns, now_ns);
        let exchange = *exchange;
        if exchange.number == ClockReading::QUESTIONS {
            state.exchange = None;
        }
        Some(exchange)
    }

    /// Takes in a reading of process 0. Returns `false` if there were enough.
    pub(super) fn take_reading(&self, reading: ClockReading) -> bool {
        if self.state.lock().complete >= READINGS {
            return false;
        }
        self.note(reading);
        self.complete();
        true
    }

    /// Counts a complete reading.
    pub(super) fn complete(&self) {
        let mut state = self.state.lock();
        state.complete += 1;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits for the first readings, or for the failure of the run.
    pub(super) async fn wait(&self) {
        poll_fn(|context| {
            let mut state = self.state.lock();
            if state.complete > 0 || state.has_failed {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            talpf_runtime::note_wait("the clocks of all processes");
            Poll::Pending
        })
        .await;
    }

    /// Ends the wait for the clocks, as the run has failed.
    pub(super) fn fail(&self) {
        let mut state = self.state.lock();
        state.has_failed = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns `true` if the last readings are complete, or the run is not traced.
    pub(super) fn are_complete(&self) -> bool {
        !self.is_traced() || self.state.lock().complete >= READINGS
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_is_kept() {
        let mut exchange = Exchange::new(1, 1_000);
        exchange.take(500, 1_100);
        exchange.take(520, 1_111);
        exchange.take(600, 1_300);
        let expected = ClockReading { here_ns: 520, there_ns: 1_105, error_ns: 6 };
        assert_eq!((exchange.number, exchange.best), (3, expected));
    }

    fn traced() -> ClockReadings {
        let clocks = ClockReadings::default();
        clocks.trace(&Recorder::default(), &Clock::start());
        clocks
    }

    #[test]
    fn an_answer_that_nobody_has_asked_for_is_refused() {
        let clocks = traced();
        let is_taken = |process, number| clocks.take_answer(process, number, 7).is_some();
        assert!(!is_taken(2, 0));
        clocks.ask(2);
        assert!(!is_taken(1, 0) && !is_taken(2, 1));
        assert!((0..ClockReading::QUESTIONS).all(|number| is_taken(2, number)));
        assert!(!is_taken(2, ClockReading::QUESTIONS));
        assert!(ClockReadings::default().take_answer(2, 0, 7).is_none());
    }

    #[test]
    fn a_process_takes_a_reading_at_the_start_and_one_at_the_end() {
        let clocks = traced();
        let reading = ClockReading::default();
        let taken = [0, 1, 2].map(|_| (clocks.are_complete(), clocks.take_reading(reading)));
        assert_eq!(taken, [(false, true), (false, true), (true, false)]);
    }

    #[test]
    fn readings_begin_once_and_only_if_the_run_is_traced() {
        let clocks = traced();
        assert_eq!([1, 1, 2, 2].map(|number| clocks.begin(number)), [true, false, true, false]);
        let untraced = ClockReadings::default();
        assert!(!untraced.begin(1) && untraced.are_complete());
    }
}
