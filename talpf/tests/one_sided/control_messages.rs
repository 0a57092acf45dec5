//! Control messages in a trace: as many of each kind as the mode of a sync sends, each with both ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use ibverbs_sim::{DeviceConfig, LinkModel};
use talpf::{Arrivals, Config, Context, Error, SyncMode, exec};
use talpf_runtime::VirtualTime;
use talpf_traces::paraver::{self, Reader, Record, TraceInfo};
use talpf_traces::{Extent, Keep, Limits, MessageKind, Recorder};

use crate::common;

const ROUNDS: u64 = 4;

/// Returns a recorder with or without control messages.
fn recorder(control: bool) -> Recorder {
    let (records, keep, extent) = (1 << 20, Keep::First, Extent::Whole);
    Recorder::with_limits(Limits { records, keep, extent, edges: false, control })
}

/// Numbers of control messages by kind and round.
type Counts = BTreeMap<(&'static str, u64), u64>;

/// Runs `program` on every rank. Returns the text of its trace, which passes the linter and has both ends of
/// every message.
fn traced<F>(
    mut config: Config,
    control: bool,
    own_workers: bool,
    program: impl Fn(Context) -> F,
) -> (String, Counts)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let recorder = recorder(control);
    config.runtime.recorder = Some(recorder.clone());
    let cores = config.runtime.virtual_time.as_ref().map(|of| of.cores);
    let workers = cores.unwrap_or(config.runtime.workers as u32);
    let info = TraceInfo { ranks: config.ranks, workers, own_workers, ..TraceInfo::default() };
    let _watchdog = common::watchdog(&format!("{} ranks, {workers} workers", config.ranks));
    exec(config, &program).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let files = recorder.write_paraver(folder.path(), "t", &info).unwrap();
    let report = paraver::check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let text = std::fs::read_to_string(&files.prv).unwrap();
    for alone in ["sends had no receive", "receives had no send"] {
        assert!(!text.contains(alone), "{text}");
    }
    let mut counts = Counts::new();
    let count = |record: Record<'_>| {
        if let Record::Communication(message) = record
            && let Some(kind) = message.control()
        {
            assert_eq!(message.bytes, 0);
            *counts.entry((kind.name(), message.tag as u64 % (1 << 48))).or_default() += 1;
        }
    };
    Reader::open(&files.prv).unwrap().read(count).unwrap();
    (text, counts)
}

/// Puts a word to every rank, itself as well, in each round.
async fn all_to_all(ctx: Context, mode: SyncMode) -> Result<(), Error> {
    let ranks = ctx.size();
    let mine = common::array(&ctx, vec![u64::from(ctx.rank().0)])?;
    let inbox = common::array(&ctx, vec![0u64; ranks as usize])?;
    let slot = ctx.register_global(&inbox).await?;
    for _ in 0..ROUNDS {
        for rank in 0..ranks {
            ctx.put(&mine.all(), slot.at(ctx.peer(rank)?, ctx.rank().0 as usize))?;
        }
        ctx.sync(mode.expecting(ranks)).window(&inbox.all()).await?;
    }
    Ok(())
}

/// Returns what [`all_to_all`] sends, on few ranks: a dissemination has as many steps as the logarithm of the
/// ranks, with a message of each rank. Rank `r` has a step with the ranks 2^k after it, whose counts
/// those messages carry; other ranks get their counts in messages of their own.
fn expected(ranks: u64, mode: SyncMode, checks_conflicts: bool) -> Counts {
    let steps = ranks * u64::from(ranks.next_power_of_two().trailing_zeros());
    let others = (1..ranks).filter(|distance| !distance.is_power_of_two()).count() as u64;
    let mut counts = Counts::new();
    for round in 0..ROUNDS {
        let exchanges = match mode.arrivals {
            Arrivals::Default => true,
            Arrivals::Cached => round == 0,
            Arrivals::Msg(_) => false,
        };
        // With more than three ranks the exchange is the barrier, unless conflicts are to be found before.
        let has_barrier = mode.barrier && !(exchanges && ranks > 3 && !checks_conflicts);
        for (kind, count) in [
            (MessageKind::Count, if exchanges { ranks * others } else { 0 }),
            (MessageKind::ExchangeStep, if exchanges { steps } else { 0 }),
            (MessageKind::BarrierStep, if has_barrier { steps } else { 0 }),
            // To each source of an operation, which all ranks are.
            (MessageKind::Acknowledgement, if mode.ack { ranks * ranks } else { 0 }),
        ] {
            if count > 0 {
                counts.insert((kind.name(), round), count);
            }
        }
    }
    counts
}

#[test]
fn each_mode_sends_the_messages_of_its_algorithm() {
    for ranks in 1..=4 {
        for mode in common::modes(ranks) {
            for workers in [1, 2] {
                let checks_conflicts = workers == 2;
                let mut config = common::unwatched(ranks, workers);
                config.check_conflicts = checks_conflicts;
                let (_, counts) = traced(config, true, false, |ctx| all_to_all(ctx, mode));
                let expected = expected(ranks.into(), mode, checks_conflicts);
                assert_eq!(counts, expected, "{mode:?}, {ranks} ranks, {workers} workers");
            }
        }
    }
}

/// Settings of a run in virtual time.
fn simulated(ranks: u32) -> Config {
    let mut config = Config { ranks, check_conflicts: false, ..Config::default() };
    let costs = Arc::default();
    config.runtime.virtual_time = Some(VirtualTime { cores: 2, costs, task_overhead_ns: 0 });
    let link = Some(LinkModel::parse("latency=2us,bandwidth=1GB/s").unwrap());
    config.device = DeviceConfig { link, ..DeviceConfig::default() };
    config
}

#[test]
fn in_virtual_time_they_change_no_line_of_data() {
    for ranks in [1, 2, 4] {
        for mode in common::modes(ranks) {
            let run =
                |control| traced(simulated(ranks), control, true, |ctx| all_to_all(ctx, mode));
            let ((with, counts), (without, none)) = (run(true), run(false));
            assert_eq!(counts, expected(ranks.into(), mode, false), "{mode:?}, {ranks} ranks");
            assert!(none.is_empty());
            let is_data = |line: &&str| {
                let tag: u64 = line.rsplit(':').next().unwrap().parse().unwrap();
                tag < 1 << 52
            };
            let messages = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| line.starts_with("3:"));
                lines.filter(is_data).map(str::to_owned).collect()
            };
            assert_eq!(messages(&with), messages(&without), "{mode:?}, {ranks} ranks");
            assert_eq!(messages(&without).len() as u64, ROUNDS * u64::from(ranks * ranks));
        }
    }
}

#[test]
fn ranks_that_share_few_cores_exchange_in_groups() {
    // 16 ranks in one group or in two of eight: each member sends to its leader and gets from it, and two
    // leaders exchange.
    for (workers, groups) in [(1, 1), (2, 2)] {
        let mut config = common::unwatched(16, workers);
        config.check_conflicts = false;
        let (_, counts) = traced(config, true, false, |ctx| async move {
            ctx.sync(SyncMode::DEFAULT).await?;
            ctx.sync(SyncMode::msg(0).with_barrier()).await
        });
        let leaders = if groups == 1 { 0 } else { groups };
        let messages = 2 * (16 - groups) + leaders;
        let of = |kind: MessageKind, round| ((kind.name(), round), messages);
        let expected = [of(MessageKind::ExchangeStep, 0), of(MessageKind::BarrierStep, 1)];
        assert_eq!(counts, Counts::from(expected), "{workers} workers");
    }
}

#[test]
fn a_late_acknowledgement_has_both_ends() {
    // Nothing waits for those of the round before a sync without any.
    let modes = [SyncMode::msg(2).with_ack(), SyncMode::msg(2)];
    for workers in [1, 2] {
        let (_, counts) = traced(common::unwatched(2, workers), true, false, |ctx| async move {
            let mine = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64; 2])?;
            let slot = ctx.register_global(&inbox).await?;
            for round in 0..20 {
                for rank in 0..2 {
                    ctx.put(&mine.all(), slot.at(ctx.peer(rank)?, ctx.rank().0 as usize))?;
                }
                ctx.sync(modes[round % 2]).window(&inbox.all()).await?;
            }
            Ok(())
        });
        let name = MessageKind::Acknowledgement.name();
        let rounds = (0..20).step_by(2).map(|round| ((name, round), 4));
        assert_eq!(counts, rounds.collect::<Counts>(), "{workers} workers");
    }
}

#[test]
fn those_of_a_library_have_both_ends() {
    let mode = SyncMode::CACHED.with_ack();
    for workers in [1, 2] {
        let (_, counts) =
            traced(common::unwatched(2, workers), true, false, |mut ctx| async move {
                for _ in 0..2 {
                    ctx.rehook(|library| all_to_all(library, mode)).await?;
                }
                Ok(())
            });
        let mut twice = expected(2, mode, true);
        twice.values_mut().for_each(|count| *count *= 2);
        assert_eq!(counts, twice, "{workers} workers");
    }
}

#[test]
fn a_run_that_fails_waits_for_none() {
    let mode = SyncMode::msg(2).with_ack();
    for workers in [1, 2] {
        let mut config = common::unwatched(2, workers);
        config.runtime.recorder = Some(recorder(true));
        let ended: Result<Vec<()>, Error> = common::run(config, |ctx| async move {
            let rank = ctx.rank();
            let mine = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64; 2])?;
            let slot = ctx.register_global(&inbox).await?;
            for peer in 0..2 {
                ctx.put(&mine.all(), slot.at(ctx.peer(peer)?, rank.0 as usize))?;
            }
            ctx.sync(mode).window(&inbox.all()).await?;
            if rank.0 == 1 {
                return Err(Error::RunEnded);
            }
            ctx.sync(mode).await
        });
        ended.unwrap_err();
    }
}
