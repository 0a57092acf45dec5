//! The rail of two others, to a process of the same machine and to one of another.

use std::sync::Arc;

use ibverbs_sim::{Packets, Rail, RoutedRail, ShmConfig, ShmRail, SocketWire};

use super::{conformance, ends::Ends, packets, shm};

fn of_one_machine() -> Ends {
    Ends::new(rails_of_one_machine())
}

fn of_two_machines() -> Ends {
    Ends::new(rails_of_two_machines())
}

pub(crate) fn rails_of_one_machine() -> [Arc<dyn Rail>; 2] {
    let networks = packets::tcp_wires(|_| None);
    let mut rails = shm::pair().into_iter().zip(networks);
    [(); 2].map(|()| {
        let (machine, network) = rails.next().unwrap();
        let network = Arc::new(Packets::new(Arc::new(network)));
        Arc::new(RoutedRail::new(machine, &[0, 1], network)) as Arc<dyn Rail>
    })
}

pub(crate) fn rails_of_two_machines() -> [Arc<dyn Rail>; 2] {
    let mut rails = (0..).zip(SocketWire::mesh(2).unwrap());
    [(); 2].map(|()| {
        let (process, network) = rails.next().unwrap();
        let machine = ShmRail::mesh(1, &ShmConfig::default()).unwrap().remove(0);
        let network = Arc::new(Packets::new(Arc::new(network)));
        Arc::new(RoutedRail::new(Arc::new(machine), &[process], network)) as Arc<dyn Rail>
    })
}

#[test]
fn processes_of_one_machine_keep_the_rules_of_rails() {
    conformance::all(&mut of_one_machine());
}

#[test]
fn processes_of_two_machines_keep_the_rules_of_rails() {
    conformance::all(&mut of_two_machines());
}

#[test]
fn a_peer_is_lost_once_wherever_it_is() {
    conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut of_one_machine());
    conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut of_two_machines());
}

#[test]
fn each_process_is_reached_by_its_own_rail() {
    // Processes 0 and 2 share a machine, where they have the numbers 0 and 1.
    let mut machines = ShmRail::mesh(2, &ShmConfig::default()).unwrap().into_iter();
    let mut networks = SocketWire::mesh(3).unwrap().into_iter().map(|wire| {
        let network = Packets::new(Arc::new(wire));
        Arc::new(network) as Arc<dyn Rail>
    });
    let (first, second, third) =
        (networks.next().unwrap(), networks.next().unwrap(), networks.next().unwrap());
    let machine = Arc::new(machines.next().unwrap());
    let first = RoutedRail::new(machine, &[0, 2], first);
    let machine = Arc::new(machines.next().unwrap());
    let third = RoutedRail::new(machine, &[0, 2], third);
    let next = |rail: &dyn Rail| {
        let mut messages = Vec::new();
        while messages.is_empty() {
            rail.poll(&mut |event| messages.push(format!("{event:?}")));
        }
        messages.remove(0)
    };
    first.send(2, b"a").unwrap();
    assert_eq!(next(&third), "Message { from: 0, bytes: [97] }");
    third.send(0, b"b").unwrap();
    assert_eq!(next(&first), "Message { from: 2, bytes: [98] }");
    second.send(0, b"c").unwrap();
    assert_eq!(next(&first), "Message { from: 1, bytes: [99] }");
    first.send(1, b"d").unwrap();
    assert_eq!(next(&*second), "Message { from: 0, bytes: [100] }");
    drop(third);
    assert!(next(&first).starts_with("Lost { process: 2"));
}

#[test]
#[should_panic(expected = "this process is one of the members")]
fn rails_of_different_processes_do_not_fit_together() {
    let machine = ShmRail::mesh(1, &ShmConfig::default()).unwrap().remove(0);
    let network = Packets::new(Arc::new(SocketWire::mesh(2).unwrap().remove(0)));
    RoutedRail::new(Arc::new(machine), &[1], Arc::new(network));
}
