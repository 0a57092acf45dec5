//! Programs of messages take the time of the formulas of LogGP, to the nanosecond.

use proptest::prelude::*;

use super::{network, run};

/// Parameters in nanoseconds and bytes; a byte takes `per_byte` nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    sends: u64,
    receives: u64,
    latency: u64,
    gap: u64,
    per_byte: u64,
    bytes: u64,
}

impl Parameters {
    fn text(self) -> String {
        let Parameters { sends, receives, latency, gap, per_byte, .. } = self;
        format!(
            "clock=1GHz,send_overhead={sends}ns,receive_overhead={receives}ns,latency={latency}ns,\
             gap={gap}ns,bandwidth={per_byte}cycles/B"
        )
    }

    fn transfer(self) -> u64 {
        self.per_byte * self.bytes
    }

    fn one_way(self) -> u64 {
        self.sends + self.latency + self.transfer() + self.receives
    }

    /// Time between messages that follow each other through one sender and its port.
    fn sends_every(self) -> u64 {
        self.sends.max(self.gap).max(self.transfer())
    }

    /// The same through one receiver and its port.
    fn receives_every(self) -> u64 {
        self.receives.max(self.gap).max(self.transfer())
    }
}

prop_compose! {
    fn parameters()(
        sends in 0u64..300, receives in 0u64..300, latency in 0u64..1_000, gap in 0u64..300,
        per_byte in 1u64..5, bytes in 0u64..200,
    ) -> Parameters {
        Parameters { sends, receives, latency, gap, per_byte, bytes }
    }
}

proptest! {
    #[test]
    fn ping_pong_takes_one_way_after_another(p in parameters(), rounds in 1u64..20) {
        let mut network = network(&p.text(), 2);
        let mut now_ns = 0;
        for round in 0..2 * rounds {
            let from = (round % 2) as u32;
            network.post(now_ns, from, 1 - from, p.bytes);
            now_ns = run(&mut network)[0].at_ns;
        }
        prop_assert_eq!(now_ns, 2 * rounds * p.one_way());
    }

    #[test]
    fn a_stream_goes_at_the_pace_of_its_slowest_stage(p in parameters(), count in 1u64..50) {
        let mut network = network(&p.text(), 2);
        (0..count).for_each(|_| { network.post(0, 0, 1, p.bytes); });
        let last = run(&mut network).last().unwrap().at_ns;
        let every = p.sends_every().max(p.receives_every());
        prop_assert_eq!(last, (count - 1) * every + p.one_way());
    }

    #[test]
    fn a_broadcast_leaves_one_port(p in parameters(), processes in 2u32..40) {
        let mut network = network(&p.text(), processes);
        (1..processes).for_each(|to| { network.post(0, 0, to, p.bytes); });
        for delivery in run(&mut network) {
            let before = u64::from(delivery.to - 1);
            prop_assert_eq!(delivery.at_ns, before * p.sends_every() + p.one_way());
        }
    }

    #[test]
    fn a_binomial_broadcast_follows_its_tree(p in parameters(), processes in 2u32..70) {
        // The time at which each process has the message, and when its port is free, by hand.
        let mut has = vec![None; processes as usize];
        has[0] = Some(0);
        let mut network = network(&p.text(), processes);
        let children = |of: u32| {
            let first = of.checked_ilog2().map_or(1, |bit| 2 << bit);
            let distances = std::iter::successors(Some(first), |distance| Some(distance * 2));
            distances.take_while(|distance| *distance < processes).map(move |distance| of + distance)
        };
        for of in 0..processes {
            let time = has[of as usize].unwrap();
            for (index, child) in children(of).filter(|child| *child < processes).enumerate() {
                has[child as usize] = Some(time + index as u64 * p.sends_every() + p.one_way());
            }
        }
        let send = |network: &mut super::Network, now_ns, of| {
            let targets = children(of).filter(|child| *child < processes);
            targets.for_each(|child| { network.post(now_ns, of, child, p.bytes); });
        };
        send(&mut network, 0, 0);
        while let Some(next_ns) = network.next_ns() {
            let mut arrived = Vec::new();
            network.advance(next_ns, |delivery| arrived.push(delivery));
            for delivery in arrived {
                prop_assert_eq!(Some(delivery.at_ns), has[delivery.to as usize].take());
                send(&mut network, delivery.at_ns, delivery.to);
            }
        }
        prop_assert!(has[1..].iter().all(Option::is_none));
    }

    #[test]
    fn a_gather_enters_one_port(p in parameters(), processes in 2u32..40) {
        let mut network = network(&p.text(), processes);
        (1..processes).for_each(|from| { network.post(0, from, 0, p.bytes); });
        for (before, delivery) in run(&mut network).into_iter().enumerate() {
            prop_assert_eq!(delivery.at_ns, before as u64 * p.receives_every() + p.one_way());
        }
    }
}
