//! Measurement of the cost of supersteps: *g* and *l* of the BSP model.

use bytemuck::bytes_of;
use talpf_runtime::{Array, Region};

use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::numbers::Rank;
use crate::slot::{MemorySlot, Use};
use crate::sync::SyncMode;

/// The cost of a superstep in which no rank sends or receives more than `h` bytes: `h * g + l`.
///
/// **Source**: `lpf_machine_t` of LPF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// *g*, from the fastest of several measurements; 0 if other programs disturb the machine more
    /// than the bytes take. **Units**: nanoseconds a byte.
    pub g_ns: f64,
    /// *l*, the median of several measurements. **Units**: nanoseconds.
    pub l_ns: f64,
}

/// Number of elements that a rank puts in a long superstep.
const LONG: usize = 128 * 1024;
/// Number of elements that a rank puts in a short superstep.
const SHORT: usize = 1;
const SAMPLES: usize = 9;

impl Context {
    /// Measures the cost of a superstep of all ranks, in which each puts to the next one and which
    /// ends by [`SyncMode::msg`]. Takes some hundredths of a second, and more with many ranks.
    ///
    /// Collective, between two supersteps of lane 0. It uses some rounds of that lane; the pattern
    /// of [`SyncMode::CACHED`] stays. Tasks that run meanwhile affect the measurement.
    ///
    /// **Completion**: all ranks have measured, and have the same figures: those of the slowest.
    /// **Errors**: no room for one more slot (`resize_memory_register`); a rank that failed.
    /// **Source**: `lpf_probe` of the thesis, chapter 2.3.
    pub async fn probe(&self) -> Result<Machine, Error> {
        // The elements to put, and behind them the window.
        let array = Array::new(self.group(), vec![0u64; 2 * LONG], LONG)?;
        let slot = self.register(&array, Use::Windowed, Call::Probe).await?;
        let next = Rank((self.rank().0 + 1) % self.size());
        // Alternately, so that a disturbance meets both. The first sample warms the caches.
        let lengths = [(SHORT, 200), (LONG, 10)];
        let mut samples = [[0; SAMPLES + 1]; 2];
        for sample in 0..=SAMPLES {
            for ((len, steps), samples) in lengths.into_iter().zip(&mut samples) {
                let (from, to) = (array.region(..len), array.region(LONG..LONG + len));
                samples[sample] = self.supersteps(steps, &from, &to, &slot, next).await?;
            }
        }
        let [(median_ns, short_ns), (_, long_ns)] = std::array::from_fn(|at| {
            let (samples, steps) = (&mut samples[at][1..], f64::from(lengths[at].1));
            samples.sort_unstable();
            (samples[SAMPLES / 2] as f64 / steps, samples[0] as f64 / steps)
        });
        let times: [f64; 3] = [median_ns, short_ns, long_ns];
        self.deregister(slot)?;
        let own = Ok((bytes_of(&times).to_vec(), ()));
        let ((), all) = self.world().all_gather(self.rank(), Call::Probe, own).await?;
        let mut slowest = times;
        for (rank, bytes) in all.each() {
            let times: [f64; 3] = bytemuck::try_pod_read_unaligned(bytes).map_err(|_| {
                let what = format!("{} bytes as the times of a probe", bytes.len());
                Error::BadControlMessage { rank, what }
            })?;
            slowest.iter_mut().zip(times).for_each(|(slowest, ns)| *slowest = slowest.max(ns));
        }
        let [l_ns, short_ns, long_ns] = slowest;
        let further = (size_of::<u64>() * (LONG - SHORT)) as f64;
        Ok(Machine { g_ns: ((long_ns - short_ns) / further).max(0.0), l_ns })
    }

    /// Runs some supersteps. Returns the time in nanoseconds.
    async fn supersteps(
        &self,
        steps: u32,
        from: &Region<'_, u64>,
        to: &Region<'_, u64>,
        slot: &MemorySlot<u64>,
        next: Rank,
    ) -> Result<u64, Error> {
        self.sync(SyncMode::msg(0).with_barrier()).await?;
        let begin_ns = self.group().clock().now_ns();
        for _ in 0..steps {
            self.put(from, slot.at(next, LONG))?;
            self.sync(SyncMode::msg(1)).window(to).await?;
        }
        Ok(self.group().clock().now_ns() - begin_ns)
    }
}
