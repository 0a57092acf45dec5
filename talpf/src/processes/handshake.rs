//! The handshake of the processes of a run, which connects their queue pairs and, if the run is traced,
//! reads their clocks.

use std::sync::atomic::Ordering;

use ibverbs_sim::QueuePairNumber;
use talpf_traces::RunProcesses;

use super::Processes;
use super::placement::Placement;
use crate::all_gather::Call;
use crate::error::Error;
use crate::numbers::Rank;
use crate::world::World;

/// Version of the messages between processes, which must be the same in all.
const VERSION: u32 = 13;

impl Processes {
    /// Returns the processes as traces declare them.
    fn traced_processes(&self, placements: &[Placement]) -> RunProcesses {
        let all = placements.iter().map(|placement| (placement.machine(), placement.workers()));
        let ranks_each = self.distribution.here().len() as u32;
        RunProcesses::new(self.distribution.process(), ranks_each, all)
    }

    /// Connects the queue pairs of a rank of this process, once all ranks have joined with the same settings.
    ///
    /// **Completion**: the queue pairs of all ranks are connected.
    pub(crate) async fn handshake(&self, world: &World, here: Rank) -> Result<(), Error> {
        let endpoint = &world.rank(here).own().endpoint;
        let credits = world.config.credits as u32;
        let recorder = world.config.runtime.recorder.as_ref();
        let recorder = recorder.filter(|_| self.distribution.processes() > 1);
        if let Some(recorder) = recorder {
            self.clocks.trace(recorder, world.rank(here).sender.group.clock());
        }
        let settings = [
            ("version", VERSION),
            ("number of ranks", world.size()),
            ("credits", credits),
            ("check of conflicts", u32::from(world.config.check_conflicts)),
            ("recording of a trace", u32::from(recorder.is_some())),
        ];
        let numbers = (0..world.size()).map(|rank| endpoint.number_for(Rank(rank)).to_u32());
        let placement = Placement::here(world.config.runtime.workers);
        let words = settings.iter().map(|(_, value)| *value).chain(numbers);
        let words = words.chain(placement.to_words());
        let own = Ok((words.flat_map(u32::to_le_bytes).collect(), ()));
        let ((), all) = world.all_gather(here, Call::Start, own).await?;
        let mut placements = Vec::new();
        for (rank, bytes) in all.each() {
            let words: Vec<u32> =
                bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
            let word = |at: usize| words.get(at).copied().unwrap_or(0);
            for (at, (what, here)) in settings.into_iter().enumerate() {
                let (here, there) = (u64::from(here), u64::from(word(at)));
                if here != there {
                    return Err(Error::OtherRun { rank, what, here, there });
                }
            }
            // After the comparison of versions and sizes, whose error says what differs.
            let before = settings.len() + world.size() as usize;
            let expected = (before + Placement::WORDS) * size_of::<u32>();
            if bytes.len() != expected {
                let what = format!("{} bytes in the handshake, not {expected}", bytes.len());
                return Err(Error::BadControlMessage { rank, what });
            }
            let process = self.distribution.process_of(rank);
            if self.distribution.of(process).start == rank.0 {
                placements.push(Placement::from_words(words[before..].iter().copied()));
            }
            if process != self.distribution.process() {
                let number = QueuePairNumber::from_u32(word(settings.len() + here.index()));
                let has_faults = world.config.device.fault.is_some();
                endpoint.connect_remote(rank, process, number, has_faults)?;
            }
        }
        let is_oversubscribed = placement.is_oversubscribed(&placements);
        self.oversubscribed.store(is_oversubscribed, Ordering::Relaxed);
        // No rank sends before all can answer.
        world.all_gather(here, Call::Start, Ok((Vec::new(), ()))).await?;
        let Some(recorder) = recorder else { return Ok(()) };
        if here == self.speaker() {
            recorder.set_processes(self.traced_processes(&placements));
            self.read_clocks().await;
        }
        // No program disturbs the reading of the clocks.
        world.all_gather(here, Call::Start, Ok((Vec::new(), ()))).await?;
        Ok(())
    }
}
