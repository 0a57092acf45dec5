//! Rules of every network, with random messages on random models.

use proptest::prelude::*;

use super::{network, run};

#[derive(Clone, Debug)]
struct Post {
    after_ns: u64,
    from: u32,
    to: u32,
    bytes: u64,
}

const PROCESSES: u32 = 8;

prop_compose! {
    fn posts()(posts in prop::collection::vec(
        (0u64..500, 0..PROCESSES, 0..PROCESSES, 0u64..5_000), 1..80,
    )) -> Vec<Post> {
        let post = |(after_ns, from, to, bytes)| Post { after_ns, from, to, bytes };
        posts.into_iter().map(post).collect()
    }
}

/// Models with the most of every part; a byte on the wire takes a nanosecond.
const MODELS: [&str; 5] = [
    "bandwidth=1GB/s",
    "overhead=100ns,latency=700ns,gap=50ns,bandwidth=1GB/s,packet=256B,header=16B",
    "latency=100ns,bandwidth=1GB/s,mesh=2x2,hop=30ns,node=2,inside.bandwidth=1GB/s,\
     inside.latency=20ns",
    "send_overhead=10ns,receive_overhead=90ns,bandwidth=1GB/s,mesh=4x2,hop=7ns,buffer=1kB",
    "overhead=10ns,latency=700ns,bandwidth=1GB/s,noise=3us,seed=7",
];

/// Returns the ports that a message passes: pairs of a node and a direction.
fn ports(model: &ibverbs_sim::LinkModel, from: u32, to: u32) -> Vec<(u32, u8)> {
    let (source, target) = (model.node_of(from), model.node_of(to));
    let is_inside = source == target && model.node_of(1) == 0;
    if is_inside { vec![(source, 2)] } else { vec![(source, 0), (target, 1)] }
}

proptest! {
    #[test]
    fn everything_takes_as_many_times_as_long_on_slowed_links(
        posts in posts(), model in 0..MODELS.len(), factor in 1u64..1_000,
    ) {
        let times = |factor: u64| {
            let model = ibverbs_sim::LinkModel::parse(MODELS[model]).unwrap().slowed(factor as f64);
            let mut network = ibverbs_sim::Network::new(model, PROCESSES);
            for Post { from, to, bytes, .. } in &posts {
                network.post(0, *from, *to, *bytes);
            }
            run(&mut network)
        };
        // Random times are drawn anew.
        if !MODELS[model].contains("noise") {
            for (slowed, delivery) in times(factor).iter().zip(times(1)) {
                prop_assert_eq!(slowed.message, delivery.message);
                prop_assert_eq!(slowed.at_ns, factor * delivery.at_ns);
            }
        }
    }

    #[test]
    fn nothing_is_early_or_lost_and_order_is_kept(posts in posts(), model in 0..MODELS.len()) {
        let mut network = network(MODELS[model], PROCESSES);
        let model = network.model().clone();
        let (mut now_ns, mut posted, mut arrived) = (0, Vec::new(), Vec::new());
        for Post { after_ns, from, to, bytes } in &posts {
            now_ns += after_ns;
            while let Some(next_ns) = network.next_ns().filter(|next_ns| *next_ns <= now_ns) {
                network.advance(next_ns, |delivery| arrived.push(delivery));
            }
            posted.push((now_ns, network.post(now_ns, *from, *to, *bytes)));
        }
        arrived.extend(run(&mut network));
        prop_assert_eq!(arrived.len(), posts.len());
        prop_assert!(arrived.iter().map(|one| one.at_ns).is_sorted());
        for delivery in &arrived {
            let (at_ns, id) = posted[delivery.message.0 as usize];
            prop_assert_eq!(id, delivery.message);
            let least_ns = model.one_way_ns(delivery.from, delivery.to, delivery.bytes);
            prop_assert!(delivery.at_ns >= at_ns + least_ns, "{:?} is early", delivery);
        }
        for from in 0..PROCESSES {
            for to in 0..PROCESSES {
                let pair = arrived.iter().filter(|one| (one.from, one.to) == (from, to));
                prop_assert!(pair.map(|one| one.message).is_sorted(), "{} to {}", from, to);
            }
        }
        // All bytes of a port pass between its first post and its last arrival.
        for node in 0..PROCESSES {
            for side in 0..3 {
                let of_port = |one: &&ibverbs_sim::Delivery| {
                    ports(&model, one.from, one.to).contains(&(node, side))
                };
                let passed: Vec<_> = arrived.iter().filter(of_port).collect();
                let wire: u64 = passed.iter().map(|one| model.packets(one.bytes).1).sum();
                let first = passed.iter().map(|one| posted[one.message.0 as usize].0).min();
                let last = passed.iter().map(|one| one.at_ns).max();
                let span = last.unwrap_or(0) - first.unwrap_or(0);
                prop_assert!(wire <= span, "{} bytes in {} ns at node {}", wire, span, node);
            }
        }
    }

    #[test]
    fn the_same_posts_give_the_same_arrivals(posts in posts(), model in 0usize..4) {
        let once = || {
            let mut network = network(MODELS[model], PROCESSES);
            for post in &posts {
                network.post(0, post.from, post.to, post.bytes);
            }
            run(&mut network)
        };
        prop_assert_eq!(once(), once());
    }
}

#[test]
fn a_message_that_nobody_is_beside_takes_exactly_the_sum_of_its_stages() {
    for text in MODELS.into_iter().filter(|text| !text.contains("noise")) {
        for (from, to, bytes) in [(0, 1, 0), (0, 7, 4_000), (5, 2, 255), (3, 3, 100)] {
            let mut network = network(text, PROCESSES);
            network.post(1_000, from, to, bytes);
            let least_ns = network.model().one_way_ns(from, to, bytes);
            assert_eq!(run(&mut network)[0].at_ns, 1_000 + least_ns, "{text}: {from} to {to}");
        }
    }
}

#[test]
fn copies_inside_a_node_share_its_memory() {
    let text = "node=4,bandwidth=1GB/s,inside.bandwidth=2GB/s";
    let mut alone = network(text, 8);
    alone.post(0, 0, 1, 1_000);
    assert_eq!(run(&mut alone)[0].at_ns, 500);
    let mut beside = network(text, 8);
    beside.post(0, 0, 1, 1_000);
    beside.post(0, 2, 3, 1_000);
    beside.post(0, 4, 5, 1_000);
    beside.post(0, 3, 7, 1_000);
    let mut times: Vec<_> = run(&mut beside).iter().map(|one| (one.to, one.at_ns)).collect();
    times.sort_unstable();
    assert_eq!(times, [(1, 500), (3, 1_000), (5, 500), (7, 1_000)]);
}

#[test]
fn processes_of_a_node_share_its_port() {
    let mut network = network("node=2,latency=5ns,bandwidth=1GB/s,inside.bandwidth=9GB/s", 6);
    network.post(0, 0, 2, 100);
    network.post(0, 1, 4, 100);
    let times: Vec<_> = run(&mut network).iter().map(|one| one.at_ns).collect();
    assert_eq!(times, [105, 205]);
}

#[test]
fn noise_makes_messages_late_by_the_same_times_for_one_seed() {
    let late = |seed: u64| -> Vec<u64> {
        let mut network = network(&format!("latency=1us,noise=500ns,seed={seed}"), 2);
        let post = |at: u64| {
            network.post(at * 10_000, 0, 1, 8);
            run(&mut network)[0].at_ns - at * 10_000 - 1_000
        };
        (0..1_000).map(post).collect()
    };
    let times = late(1);
    assert_eq!(times, late(1));
    assert_ne!(times, late(2));
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*least < 20 && (480..=500).contains(most), "{least} to {most}");
    let mean = times.iter().sum::<u64>() / 1_000;
    assert!((235..265).contains(&mean), "{mean}");
}
