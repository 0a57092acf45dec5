//! Random programs of notified puts and notifications give what their sequences, one after the other,
//! give.

use proptest::prelude::*;
use talpf::{Config, Context, Error, NotifiedTask, Rank};
use talpf_runtime::Array;

use crate::common::{self, COPIED};

/// A sequence of items from one rank to one id of another.
#[derive(Clone, Debug)]
struct Stream {
    source: u32,
    target: u32,
    /// Elements of each put; 0 for notifications without a put.
    len: usize,
    /// Number of inboxes, each with an id of its own.
    inboxes: usize,
    items: usize,
    /// First of its ids.
    id: u32,
}

#[derive(Clone, Debug)]
struct Program {
    ranks: u32,
    workers: usize,
    credits: usize,
    streams: Vec<Stream>,
    /// Order in which a rank declares the items of its streams.
    order: Vec<usize>,
}

fn program() -> impl Strategy<Value = Program> {
    let lens = prop::sample::select(vec![0, 1, COPIED, COPIED + 1, 1500]);
    let stream = (any::<[prop::sample::Index; 2]>(), lens, 1..4usize, 1..8usize);
    let streams = prop::collection::vec(stream, 1..8);
    let order = prop::collection::vec(any::<prop::sample::Index>(), 60);
    (1..5u32, 1..3usize, 1..4usize, streams, order).prop_map(
        |(ranks, workers, credits, streams, order)| {
            let mut id = 0;
            let stream = |(ends, len, inboxes, items): ([prop::sample::Index; 2], _, usize, _)| {
                let [source, target] = ends.map(|end| end.index(ranks as usize) as u32);
                id += inboxes as u32;
                Stream { source, target, len, inboxes, items, id: id - inboxes as u32 }
            };
            let streams: Vec<_> = streams.into_iter().map(stream).collect();
            let order = order.into_iter().map(|index| index.index(streams.len())).collect();
            Program { ranks, workers, credits, streams, order }
        },
    )
}

/// Returns the number that item `item` of a stream is made of.
fn number(stream: usize, item: usize) -> u64 {
    (1000 * stream + item + 1) as u64
}

/// The arrays of a stream at one rank.
struct Ends {
    /// Inboxes of the target, with a slot for both.
    inbox: Array<u64>,
    slot: talpf::MemorySlot<u64>,
    from: Array<u64>,
    /// Sums of the items that have come.
    log: Array<u64>,
}

async fn run(ctx: Context, program: Program) -> Result<Vec<Vec<u64>>, Error> {
    let mut ends = Vec::new();
    for stream in &program.streams {
        let len = stream.len.max(1);
        let inbox = Array::new(ctx.group(), vec![0u64; len * stream.inboxes], len)?;
        let slot = ctx.register_global(&inbox).await?;
        let from = Array::new(ctx.group(), vec![0u64; len * stream.inboxes], len)?;
        let log = Array::new(ctx.group(), vec![0u64; stream.items], 1)?;
        ends.push(Ends { inbox, slot, from, log });
    }
    // The items in some order, and then the rest.
    let rest = (0..program.streams.len()).flat_map(|stream| vec![stream; 8]);
    let mut next = vec![0; program.streams.len()];
    for number in program.order.iter().copied().chain(rest) {
        let (stream, ends) = (&program.streams[number], &ends[number]);
        let item = next[number];
        if item == stream.items {
            continue;
        }
        next[number] += 1;
        if ctx.rank() == Rank(stream.source) {
            send(&ctx, stream, ends, (number, item))?;
        }
        if ctx.rank() == Rank(stream.target) {
            receive(&ctx, stream, ends, item)?;
        }
    }
    let mut logs = Vec::new();
    for (stream, ends) in program.streams.iter().zip(&ends) {
        if ctx.rank() == Rank(stream.target) {
            logs.push(common::read(&ctx, &ends.log).await?);
        } else {
            logs.push(Vec::new());
        }
    }
    Ok(logs)
}

fn send(
    ctx: &Context,
    stream: &Stream,
    ends: &Ends,
    (of, item): (usize, usize),
) -> Result<(), Error> {
    let inbox = item % stream.inboxes;
    let (id, target) = (stream.id + inbox as u32, stream.target);
    let (len, value) = (stream.len.max(1), number(of, item));
    let region = ends.from.region(inbox * len..(inbox + 1) * len);
    if stream.len == 0 {
        let notifications = ctx.notifications().clone();
        let task = ctx.group().task("notify").inout(&region);
        task.spawn_async(move |order| async move {
            notifications.notify(target, id, value as u32).await.unwrap();
            drop(order);
        })?;
        return Ok(());
    }
    let fill = ctx.group().task("fill").output(&region);
    fill.spawn(move |mut values| values.fill(value))?;
    ctx.put_notify(&region, ends.slot.at(target, inbox * len), id, value as u32)
}

fn receive(ctx: &Context, stream: &Stream, ends: &Ends, item: usize) -> Result<(), Error> {
    let inbox = item % stream.inboxes;
    let (id, len) = (stream.id + inbox as u32, stream.len);
    let log = ends.log.region(item..=item);
    if len == 0 {
        let region = ends.inbox.region(inbox..=inbox);
        let event = ctx.notifications().event(id)?;
        // The region orders the tasks that wait for one id.
        let task = ctx.group().task("count").inout(&region).notified(&event).output(&log);
        task.spawn(move |_order, mut log| {
            log[0] = u64::from(event.notification().unwrap().value);
        })?;
        return Ok(());
    }
    let region = ends.inbox.region(inbox * len..(inbox + 1) * len);
    let inbox = ctx.notifications().inbox(&region, id)?;
    let last = inbox.last();
    let task = ctx.group().task("sum").inbox(&inbox).output(&log);
    task.spawn(move |values, mut log| {
        let value = u64::from(last().unwrap().value);
        log[0] = if values.iter().all(|other| *other == value) { value } else { u64::MAX };
    })?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn a_program_gives_the_items_of_its_streams_in_order(program in program()) {
        let Program { ranks, workers, credits, .. } = program;
        let config = Config { credits, ..common::config(ranks, workers) };
        let logs = common::run(config, |ctx| run(ctx, program.clone())).unwrap();
        for (of, stream) in program.streams.iter().enumerate() {
            let items = Vec::from_iter((0..stream.items).map(|item| number(of, item)));
            prop_assert_eq!(&logs[stream.target as usize][of], &items, "stream {}", of);
        }
    }
}
