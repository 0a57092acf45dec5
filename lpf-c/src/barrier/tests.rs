use std::sync::Arc;
use std::thread;

use super::*;

/// Lets `parties` threads pass `rounds` times, with as many polls before they park, and checks each outcome.
fn run(parties: usize, rounds: u32, patience: Patience) {
    let barrier = Arc::new(Barrier::new(parties));
    let pass = |index: usize| {
        let barrier = Arc::clone(&barrier);
        move || {
            let parker = Parker::new();
            for round in 0..rounds {
                let is_next = round as usize % parties == index;
                let notes = if is_next { note::GETS } else { 0 };
                let outcome = pass(&barrier, Purpose::Sync, notes, patience, &parker);
                assert_eq!(outcome, note::GETS, "round {round}");
            }
        }
    };
    let threads: Vec<_> = (0..parties).map(|index| thread::spawn(pass(index))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no round differs"));
}

#[test]
fn each_party_gets_the_notes_of_the_phase() {
    run(2, 2000, Patience { spins: 100, yields: 10 });
    run(5, 200, Patience { spins: 0, yields: 10 });
}

#[test]
fn parties_that_park_at_once_are_woken() {
    run(3, 300, Patience { spins: 0, yields: 0 });
}

#[test]
fn different_purposes_fail_for_all() {
    let patience = Patience::of(2, 1);
    let barrier = Barrier::new(2);
    let outcomes = thread::scope(|scope| {
        let leaves = scope.spawn(|| pass(&barrier, Purpose::Leave, 0, patience, &Parker::new()));
        let syncs = pass(&barrier, Purpose::Sync, 0, patience, &Parker::new());
        [leaves.join().expect("passes"), syncs]
    });
    assert_eq!(outcomes.map(|outcome| outcome & note::FAILED), [note::FAILED; 2]);
    let alone = Barrier::new(1);
    assert_eq!(pass(&alone, Purpose::Rehook, 0, patience, &Parker::new()), 0);
}
