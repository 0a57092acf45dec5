//! Benchmark of small notified writes: the time of one, and the rate between one pair of ends.
//!
//! Prints three figures, each with the median and the spread of several repetitions:
//! - posting an 8-byte inline WRITE_WITH_IMM, unsignalled, up to its receive completion;
//! - the same, signalled, with both ends polled and the receive posted again, on one thread;
//! - a sustained stream with the receiving end polled and refilled in batches of 8 on another
//!   thread, posted one by one and in batches of 8.

use std::{
    error::Error, hint::black_box, ptr::NonNull, sync::atomic::AtomicU64, thread, time::Instant,
};

use ibverbs_sim::*;

const DEPTH: usize = 1024;
const STREAM: u64 = 4_000_000;
const REPETITIONS: usize = 9;

struct Pair {
    sender: QueuePair,
    receiver: QueuePair,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    target: RemoteAddress,
    _region: MemoryRegion,
    _word: Box<AtomicU64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("repetitions {REPETITIONS}, depth {DEPTH}, stream {STREAM}; median [min .. max]");
    report("post, unsignalled", "ns", measure(post_only::<1>)?);
    report("post, unsignalled, batches of 8", "ns", measure(post_only::<8>)?);
    report("post signalled, poll both, repost", "ns", measure(post_and_poll)?);
    report("stream, one by one", "M/s", measure(|| stream(1))?);
    report("stream, batches of 8", "M/s", measure(|| stream(8))?);
    Ok(())
}

fn measure(
    mut once: impl FnMut() -> Result<f64, Box<dyn Error>>,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut figures = (0..REPETITIONS).map(|_| once()).collect::<Result<Vec<_>, _>>()?;
    figures.sort_by(f64::total_cmp);
    Ok(figures)
}

fn report(what: &str, unit: &str, figures: Vec<f64>) {
    let (low, high) = (figures[0], figures[figures.len() - 1]);
    let median = figures[figures.len() / 2];
    println!("{what:36} {median:7.1} {unit} [{low:.1} .. {high:.1}]");
}

fn post_only<const BATCH: usize>() -> Result<f64, Box<dyn Error>> {
    let pair = Pair::new()?;
    let mut completions = [WorkCompletion::default(); 8];
    let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
    let mut spent = 0;
    let rounds = 800;
    for _ in 0..rounds {
        pair.receiver.post_receive(&[receive; DEPTH][BATCH - 1..])?;
        let bytes = 1u64.to_ne_bytes();
        let start = Instant::now();
        for _ in 1..DEPTH / BATCH {
            let request = pair.write(black_box(&bytes), SendFlags::NONE);
            pair.sender.post_send(&[request; BATCH])?;
        }
        spent += start.elapsed().as_nanos();
        pair.sender.post_send(&[pair.write(&bytes, SendFlags::SIGNALLED)])?;
        pair.send_cq.poll(&mut completions);
        while pair.recv_cq.poll(&mut completions) > 0 {}
    }
    Ok(spent as f64 / (rounds * (DEPTH - BATCH)) as f64)
}

fn post_and_poll() -> Result<f64, Box<dyn Error>> {
    let pair = Pair::new()?;
    let mut completion = [WorkCompletion::default()];
    let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
    pair.receiver.post_receive(&[receive; 8])?;
    let start = Instant::now();
    for round in 0..STREAM / 4 {
        pair.sender.post_send(&[pair.write(&round.to_ne_bytes(), SendFlags::SIGNALLED)])?;
        assert_eq!(pair.recv_cq.poll(&mut completion), 1);
        pair.receiver.post_receive(&[receive])?;
        assert_eq!(pair.send_cq.poll(&mut completion), 1);
    }
    Ok(start.elapsed().as_nanos() as f64 / (STREAM / 4) as f64)
}

fn stream(batch: usize) -> Result<f64, Box<dyn Error>> {
    let pair = Pair::new()?;
    let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
    pair.receiver.post_receive(&[receive; DEPTH])?;
    let start = Instant::now();
    thread::scope(|scope| {
        let owner = scope.spawn(|| -> Result<(), PostError> {
            let mut completions = [WorkCompletion::default(); 8];
            let (mut seen, mut used) = (0, 0);
            while seen < STREAM {
                let count = pair.recv_cq.poll(&mut completions);
                if count < completions.len() {
                    // Let a batch gather: polling all the time takes the sender's cache lines.
                    (0..4).for_each(|_| std::hint::spin_loop());
                }
                seen += count as u64;
                used += count;
                while used >= 8 {
                    pair.receiver.post_receive(&[receive; 8])?;
                    used -= 8;
                }
            }
            Ok(())
        });
        let mut completions = [WorkCompletion::default(); 8];
        let bytes = 1u64.to_ne_bytes();
        let mut posted = 0;
        while posted < STREAM {
            let mut requests = [pair.write(&bytes, SendFlags::NONE); 8];
            let before = posted;
            posted += batch as u64;
            if before / 256 != posted / 256 {
                requests[batch - 1].flags = SendFlags::SIGNALLED;
            }
            while let Err(refused) = pair.sender.post_send(&requests[..batch]) {
                // The queue is full while the stream waits for receives.
                assert_eq!(refused.index, 0, "batches divide the depth");
                if pair.send_cq.poll(&mut completions) == 0 {
                    thread::yield_now();
                }
            }
            if posted % 1024 == 0 {
                while pair.send_cq.poll(&mut completions) > 0 {}
            }
        }
        owner.join().map_err(|_| "the owner panicked")?.map_err(Box::<dyn Error>::from)
    })?;
    Ok(STREAM as f64 / start.elapsed().as_secs_f64() / 1e6)
}

impl Pair {
    fn new() -> Result<Self, Box<dyn Error>> {
        let device = Device::new(DeviceConfig::default())?;
        let (here, there) = (device.open(), device.open());
        let (here_pd, there_pd) =
            (here.allocate_protection_domain(), there.allocate_protection_domain());
        let word = Box::new(AtomicU64::new(0));
        let start = NonNull::from(&*word).cast::<u8>();
        #[allow(unsafe_code, reason = "registering memory is the caller's promise")]
        // SAFETY: `_word` outlives `_region` (fields drop in order), and nobody reads it.
        let region =
            unsafe { there_pd.register(start, 8, Access::LOCAL_WRITE | Access::REMOTE_WRITE)? };
        let send_cq = here.create_completion_queue(DEPTH as u32, None)?;
        let recv_cq = there.create_completion_queue(2 * DEPTH as u32, None)?;
        let size = |send: &CompletionQueue, recv: &CompletionQueue| QueuePairInit {
            max_send_wr: DEPTH as u32,
            max_recv_wr: DEPTH as u32,
            ..QueuePairInit::new(send, recv)
        };
        let sender = here_pd.create_queue_pair(&size(&send_cq, &send_cq))?;
        let receiver = there_pd.create_queue_pair(&size(&recv_cq, &recv_cq))?;
        sender.connect(receiver.number(), &Connection::default())?;
        receiver.connect(sender.number(), &Connection::default())?;
        let target = region.at(0);
        Ok(Self { sender, receiver, send_cq, recv_cq, target, _region: region, _word: word })
    }

    fn write<'a>(&self, bytes: &'a [u8; 8], flags: SendFlags) -> SendWorkRequest<'a> {
        let operation = Operation::WriteWithImmediate { remote: self.target, immediate: 7 };
        SendWorkRequest { wr_id: 1, operation, payload: Payload::Inline(bytes), flags }
    }
}
