//! Rails that processes are given once they have met.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use ibverbs_sim::{
    OfiChoice, RailEvent,
    bootstrap::{Bootstrap, BootstrapError, Connected, Connections, Fabric, PEER_TIMEOUT, connect},
};

use super::{Server, TIMEOUT, each};

fn connected(
    processes: u32,
    fabric: impl Fn(u32) -> Fabric + Sync,
) -> Vec<Result<Connected, BootstrapError>> {
    let server = Server::start(processes, TIMEOUT);
    let all = each(processes, |process| {
        let choice = OfiChoice::default();
        connect(&mut server.join(process, processes), fabric(process), &choice, PEER_TIMEOUT)
    });
    assert_eq!(server.error(), None);
    all
}

/// Checks that every process gets a message of each other one.
fn all_reach_all(rails: &[Connected]) {
    each(rails.len() as u32, |process| {
        let rail = &rails[process as usize].rail;
        assert_eq!((rail.process(), rail.processes()), (process, rails.len() as u32));
        for to in (0..rail.processes()).filter(|to| *to != process) {
            rail.send(to, &[process as u8, to as u8]).unwrap();
        }
        let mut from = HashMap::new();
        while from.len() + 1 < rails.len() {
            rail.poll(&mut |event| match event {
                RailEvent::Message { from: sender, bytes } => {
                    assert_eq!(bytes, [sender as u8, process as u8]);
                    assert_eq!(from.insert(sender, ()), None);
                }
                other => panic!("{other:?}"),
            });
        }
    });
}

#[test]
fn each_fabric_joins_the_processes_of_one_machine() {
    for (fabric, within) in
        [(Fabric::Auto, Fabric::Shm), (Fabric::Shm, Fabric::Shm), (Fabric::Tcp, Fabric::Tcp)]
    {
        for processes in [1, 3] {
            let all: Vec<_> =
                connected(processes, |_| fabric).into_iter().map(Result::unwrap).collect();
            all_reach_all(&all);
            for connected in &all {
                let within = Some(within).filter(|_| processes > 1);
                let expected = Connections {
                    within,
                    between: None,
                    provider: None,
                    without_ofi: None,
                    machines: 1,
                };
                assert_eq!((connected.connections, connected.neighbours), (expected, processes));
                assert_eq!(connected.rail.limits().is_mapped, fabric != Fabric::Tcp);
            }
        }
    }
}

#[test]
fn a_process_with_another_fabric_is_named() {
    let all = connected(2, |process| [Fabric::Tcp, Fabric::Auto][process as usize]);
    let errors = all.into_iter().map(|result| result.err().unwrap().to_string());
    assert_eq!(
        errors.collect::<Vec<_>>(),
        [
            "process 1 is to be connected by auto, process 0 by tcp",
            "process 0 is to be connected by tcp, process 1 by auto",
        ]
    );
}

/// A bootstrap whose processes have put what the test says.
struct Forged(Vec<u8>);

impl Bootstrap for Forged {
    fn process(&self) -> u32 {
        0
    }

    fn processes(&self) -> u32 {
        2
    }

    fn address(&self) -> IpAddr {
        IpAddr::from([127, 0, 0, 1])
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    fn put(&mut self, _: &str, _: &[u8]) -> Result<(), BootstrapError> {
        Ok(())
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        Ok(())
    }

    fn get(&mut self, _: u32, _: &str) -> Result<Vec<u8>, BootstrapError> {
        Ok(self.0.clone())
    }
}

#[test]
fn a_card_that_makes_no_sense_is_named_with_its_process() {
    for card in [&b""[..], b"\x04\0\0\0auto", &[0; 40]] {
        let error =
            connect(&mut Forged(card.to_vec()), Fabric::Auto, &OfiChoice::default(), PEER_TIMEOUT)
                .err()
                .unwrap()
                .to_string();
        assert_eq!(error, "process 0 has put no \"verbs-card-2\" that makes sense");
    }
}
