//! Processes that a slow link joins: results are those of any other link, and a link that stalls differs from
//! a process that has gone by the peer timeout alone.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use ibverbs_sim::OfiChoice;
use ibverbs_sim::bootstrap::{
    Bootstrap, BootstrapError, BootstrapServer, Fabric, TcpBootstrap, connect,
};
use talpf::{Config, Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;
use crate::relay::{Link, Pace, Stall};

const TIMEOUT: Duration = Duration::from_secs(60);
const SECRET: &[u8] = b"of the test";

/// Elements of a long put, more than travel with their claim, and of a short one.
const LONG: usize = 3000;
const SHORT: usize = 7;

/// A bootstrap that gives the other processes addresses on the other side of a link.
struct Relayed<'a> {
    bootstrap: TcpBootstrap,
    link: &'a Link,
}

impl Bootstrap for Relayed<'_> {
    fn process(&self) -> u32 {
        self.bootstrap.process()
    }

    fn processes(&self) -> u32 {
        self.bootstrap.processes()
    }

    fn address(&self) -> IpAddr {
        self.bootstrap.address()
    }

    fn timeout(&self) -> Duration {
        self.bootstrap.timeout()
    }

    /// Puts a value, in which each address, a text with its length in front, becomes one of the link.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let mut relayed = value.to_vec();
        let mut at = 0;
        let mut count = 0;
        while let Some(bytes) = relayed.get(at..at + 4) {
            let length = u32::from_le_bytes(bytes.try_into().unwrap()) as usize;
            let text = relayed.get(at + 4..at + 4 + length).unwrap_or_default();
            let address = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            at += match address {
                None => 1,
                Some(address) => {
                    let text = self.link.to(address).to_string();
                    let field = [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
                    let end = field.len();
                    relayed.splice(at..at + 4 + length, field);
                    count += 1;
                    end
                }
            };
        }
        assert_eq!(count, 2, "addresses of data and of life in {key}");
        self.bootstrap.put(key, &relayed)
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.bootstrap.fence()
    }

    fn get(&mut self, process: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        self.bootstrap.get(process, key)
    }
}

/// Runs the program in processes that a link joins. Returns the result of each.
fn run_over(
    link: &Link,
    config: &Config,
    peer_timeout: Duration,
    rounds: u64,
) -> Vec<Result<u64, Error>> {
    let processes = config.ranks;
    let server = BootstrapServer::listen("127.0.0.1:0", processes, SECRET).unwrap();
    let address = format!("127.0.0.1:{}", server.port().unwrap());
    let _watchdog = common::watchdog("processes over a slow link");
    thread::scope(|scope| {
        scope.spawn(|| server.run(TIMEOUT));
        let start = |process| {
            let address = &address;
            scope.spawn(move || {
                let bootstrap =
                    TcpBootstrap::join(address, process, processes, SECRET, &[], TIMEOUT);
                let mut bootstrap = Relayed { bootstrap: bootstrap.unwrap(), link };
                let choice = OfiChoice::default();
                let connected = connect(&mut bootstrap, Fabric::Tcp, &choice, peer_timeout);
                let main = |ctx| sums(ctx, rounds);
                hook_on_rail(connected.unwrap().rail, config.clone(), main)
            })
        };
        let threads: Vec<_> = (0..processes).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Number that a rank sends in a round.
fn value(rank: u32, round: u64) -> u64 {
    (round << 8 | u64::from(rank)).wrapping_mul(6_364_136_223_846_793_005)
}

/// Puts numbers to the next rank in each round, by a long and a short put, and gets those that it got. Returns a
/// sum of all.
async fn sums(ctx: Context, rounds: u64) -> Result<u64, Error> {
    let (own, size) = (ctx.rank().0, ctx.size());
    let mine = common::array(&ctx, vec![0u64; LONG])?;
    let [long, short] = [LONG, SHORT].map(|length| common::array(&ctx, vec![0u64; length]));
    let (long, short, got) = (long?, short?, common::array(&ctx, vec![0u64; LONG])?);
    let (to_long, to_short) =
        (ctx.register_global(&long).await?, ctx.register_global(&short).await?);
    ctx.register_local(&got)?;
    let next = Rank((own + 1) % size);
    let mut sum = 0u64;
    for round in 0..rounds {
        let number = value(own, round);
        ctx.group()
            .task("fill")
            .output(&mine.all())
            .run(move |mut mine| mine.fill(number))?
            .await?;
        ctx.put(&mine.all(), to_long.at(next, 0))?;
        ctx.put(&mine.region(0..SHORT), to_short.at(next, 0))?;
        ctx.sync(SyncMode::DEFAULT).window(&long.all()).window(&short.all()).await?;
        ctx.get(to_long.at(next, 0), &got.all())?;
        ctx.sync(SyncMode::DEFAULT).expose(&long.all()).await?;
        for array in [&long, &short, &got] {
            let read = common::read(&ctx, array).await?;
            assert!(read.iter().all(|number| *number == read[0]), "round {round}");
            sum = sum.wrapping_mul(31).wrapping_add(read[0]);
        }
    }
    Ok(sum)
}

/// Returns what [`sums`] returns of a rank.
fn expected(rank: u32, size: u32, rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum, round| {
        let put = value((rank + size - 1) % size, round);
        // The next rank has got what this one has put.
        let all = [put, put, value(rank, round)];
        all.into_iter().fold(sum, |sum, number: u64| sum.wrapping_mul(31).wrapping_add(number))
    })
}

#[track_caller]
fn check(ends: Vec<Result<u64, Error>>, rounds: u64) {
    let size = ends.len() as u32;
    for (rank, end) in (0..).zip(ends) {
        assert_eq!(end.unwrap(), expected(rank, size, rounds), "rank {rank}");
    }
}

const FAST: Pace = Pace { delay: Duration::ZERO, piece: 1 << 16 };

#[test]
fn a_link_that_is_late_and_narrow_changes_no_result() {
    for (delay, piece) in [(1000, 1400), (20_000, 1 << 16), (0, 11)] {
        let link = Link::new(Pace { delay: Duration::from_micros(delay), piece }, []);
        let rounds = if delay > 1000 { 5 } else { 10 };
        check(run_over(&link, &common::config(3, 1), TIMEOUT, rounds), rounds);
    }
}

#[test]
fn a_link_that_stalls_for_less_than_the_peer_timeout_changes_nothing() {
    const ROUNDS: u64 = 100;
    // Together longer than the timeout.
    let stall = Stall { after: 200_000, duration: Duration::from_millis(1500) };
    let link = Link::new(FAST, [stall; 2]);
    let begin = Instant::now();
    let ends = run_over(&link, &common::config(2, 1), Duration::from_millis(2900), ROUNDS);
    check(ends, ROUNDS);
    assert!(link.stalls() == 0 && begin.elapsed() > 2 * stall.duration, "{:?}", begin.elapsed());
}

#[test]
fn a_link_that_stalls_for_longer_than_the_peer_timeout_names_the_peer() {
    const PEER_TIMEOUT: Duration = Duration::from_millis(800);
    let link = Link::new(FAST, [Stall { after: 200_000, duration: TIMEOUT }]);
    let begin = Instant::now();
    let ends = run_over(&link, &common::unwatched(2, 1), PEER_TIMEOUT, u64::MAX);
    for (end, peer) in ends.into_iter().zip([1, 0]) {
        let error = end.unwrap_err().to_string();
        let named = format!("rank {peer} failed: its process has shown no life");
        assert!(error.contains(&named), "{error}");
    }
    let elapsed = begin.elapsed();
    assert!(PEER_TIMEOUT < elapsed && elapsed < TIMEOUT, "{elapsed:?}");
}
