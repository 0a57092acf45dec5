//! Tests of link models and of the networks that carry messages as they say.

mod bad_input;
mod buffers;
mod log_gp;
mod profiles;
mod rules;

use ibverbs_sim::{Delivery, LinkModel, Network};

/// Lets everything happen that is under way.
fn run(network: &mut Network) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    while let Some(next_ns) = network.next_ns() {
        network.advance(next_ns, |delivery| deliveries.push(delivery));
    }
    deliveries
}

fn network(text: &str, processes: u32) -> Network {
    Network::new(LinkModel::parse(text).unwrap(), processes)
}
