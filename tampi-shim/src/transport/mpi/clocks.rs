//! Clocks of the processes of a run that is traced, by which their traces are joined.
//!
//! At the start and at the end, when no program runs, rank 0 asks one rank after the other for its
//! time, [`QUESTIONS`](ClockReading::QUESTIONS) times in a row. The answer of the shortest round trip
//! is the best, and the rank gets it as a reading of the clock of rank 0. Nothing is sent while programs run.

use talpf_runtime::{Clock, machine_id};
use talpf_traces::{ClockReading, Recorder, RunProcesses};

use super::{Library, RawCommunicator, Refused};

/// Recorder and clock of the rank of this process, in a run that all ranks trace.
pub(super) struct TracedClock {
    recorder: Recorder,
    clock: Clock,
}

impl TracedClock {
    /// Notes the processes of the run in the recorder of this one, and reads the clocks for the first
    /// time. Returns `None` if not all ranks have a recorder, or there is one rank only. Blocks until
    /// all ranks call it.
    pub(super) fn begin(
        library: &Library,
        recorder: Option<&Recorder>,
        clock: &Clock,
        workers: usize,
    ) -> Result<Option<Self>, Refused> {
        let own = library.rank() as usize;
        let mut words = vec![0; 1 + 2 * library.size() as usize];
        words[0] = u64::from(recorder.is_none());
        words[1 + 2 * own..][..2].copy_from_slice(&[machine_id(), workers as u64]);
        library.world().unite(&mut words)?;
        let is_traced = words[0] == 0 && library.size() > 1;
        let Some(recorder) = recorder.filter(|_| is_traced) else { return Ok(None) };
        let all = words[1..].as_chunks().0.iter();
        let all = all.map(|&[machine, workers]| (machine, workers as u32));
        recorder.set_processes(RunProcesses::new(library.rank(), 1, all));
        let traced = TracedClock { recorder: recorder.clone(), clock: clock.clone() };
        traced.read(library)?;
        Ok(Some(traced))
    }

    /// Reads the clock of rank 0. Blocks until all ranks call it.
    pub(super) fn read(&self, library: &Library) -> Result<(), Refused> {
        let apart = library.world().duplicate()?;
        if library.rank() == 0 {
            let here_ns = self.clock.now_ns();
            self.recorder.note_clock(ClockReading { here_ns, there_ns: here_ns, error_ns: 0 });
            for rank in 1..library.size() {
                let ClockReading { here_ns, there_ns, error_ns } = self.ask(apart, rank)?;
                apart.send_words(&[here_ns, there_ns, error_ns], rank)?;
            }
        } else {
            for _ in 0..ClockReading::QUESTIONS {
                let [] = apart.receive_words(0)?;
                apart.send_words(&[self.clock.now_ns()], 0)?;
            }
            let [here_ns, there_ns, error_ns] = apart.receive_words(0)?;
            self.recorder.note_clock(ClockReading { here_ns, there_ns, error_ns });
        }
        apart.free()
    }

    /// Asks a rank for its time, and returns the best reading of it.
    fn ask(&self, apart: RawCommunicator, rank: u32) -> Result<ClockReading, Refused> {
        let mut best = ClockReading::UNKNOWN;
        for _ in 0..ClockReading::QUESTIONS {
            let asked_ns = self.clock.now_ns();
            apart.send_words(&[], rank)?;
            let [answer_ns] = apart.receive_words(rank)?;
            let reading = ClockReading::of_answer(answer_ns, asked_ns, self.clock.now_ns());
            best = best.or_better(reading);
        }
        Ok(best)
    }
}
