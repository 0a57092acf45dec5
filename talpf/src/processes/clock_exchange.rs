//! Readings of the clock of process 0 by the others, at the start and at the end of a run that is traced.
//!
//! Process 0 asks one process after the other for its time, [`QUESTIONS`](ClockReading::QUESTIONS)
//! times in a row. The answer of the shortest round trip is the best: it was given at some moment between question and arrival, so
//! that half of the round trip bounds the error. The process then gets it as a reading:
//!
//! ```text
//! process 0 ── question ──► process 1
//! process 0 ◄── answer ──── process 1      ... the next question, to the last one
//! process 0 ── reading ───► process 1      ... the next process
//! ```
//!
//! Each message is answered where it is handled, so that no task is woken in between. Nothing is sent
//! while programs run: the first readings come before those begin, the last ones once all have ended. A
//! run that fails has the first ones only.

use talpf_traces::ClockReading;

use super::Processes;
use super::clock_readings::Exchange;
use super::control_message::ControlMessage;
use crate::numbers::Rank;

impl Processes {
    /// Reads the clocks for the first time, if the run is traced.
    ///
    /// **Completion**: this process has its reading, process 0 has given all; or the run has failed.
    pub(super) async fn read_clocks(&self) {
        if self.clocks.is_traced() {
            self.begin_readings(1);
            self.clocks.wait().await;
        }
    }

    /// Begins the readings with this number, counted from 1, unless they have begun. Only process 0
    /// does.
    pub(super) fn begin_readings(&self, number: u32) {
        if self.distribution.process() == 0 && self.clocks.begin(number) {
            self.ask_after(0);
        }
    }

    /// Asks the process after `process`; after the last one the readings are complete.
    fn ask_after(&self, process: u32) {
        let next = process + 1;
        if next >= self.distribution.processes() {
            return self.clocks.complete();
        }
        self.clocks.ask(next);
        self.send_to(next, ControlMessage::ClockQuestion { number: 0 });
    }

    /// Answers a question of process 0.
    ///
    /// **Errors**: another process has asked; the run is not traced here.
    pub(super) fn take_clock_question(&self, process: u32, number: u32) -> Result<(), String> {
        match self.clocks.now_ns().filter(|_| process == 0) {
            Some(time_ns) => {
                self.send_to(process, ControlMessage::ClockAnswer { number, time_ns });
                Ok(())
            }
            None => Err("a question for the time, which is not its to ask".to_owned()),
        }
    }

    /// Takes in the time of a process, and asks on.
    ///
    /// **Errors**: nobody has asked for it.
    pub(super) fn take_clock_answer(
        &self,
        process: u32,
        number: u32,
        time_ns: u64,
    ) -> Result<(), String> {
        let taken = self.clocks.take_answer(process, number, time_ns);
        let unasked = || "a time that nobody has asked for".to_owned();
        let Exchange { number, best, .. } = taken.ok_or_else(unasked)?;
        if number < ClockReading::QUESTIONS {
            self.send_to(process, ControlMessage::ClockQuestion { number });
        } else {
            self.send_to(process, ControlMessage::ClockReading(best));
            self.ask_after(process);
        }
        Ok(())
    }

    /// Takes in the reading of the clock of process 0.
    ///
    /// **Errors**: another process has sent it; there were enough; the run is not traced here.
    pub(super) fn take_clock_reading(
        &self,
        process: u32,
        reading: ClockReading,
    ) -> Result<(), String> {
        let is_expected = process == 0 && self.clocks.is_traced();
        if is_expected && self.clocks.take_reading(reading) {
            Ok(())
        } else {
            Err("a reading of the clock that nobody has asked for".to_owned())
        }
    }

    /// Sends a message of this process to another.
    fn send_to(&self, process: u32, message: ControlMessage<'_>) {
        let target = Rank(self.distribution.of(process).start);
        if let Some(peer) = self.peers.remote(target) {
            peer.send(self.speaker(), message);
        }
    }
}
