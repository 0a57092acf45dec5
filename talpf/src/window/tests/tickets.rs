//! Tests of tickets in one thread.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;

const LANDED: HasLanded<'static> = &|_| true;

/// Opens the window of a round, and returns its tickets.
fn open(table: &WindowTable, round: u64, area: Area) -> Vec<Ticket> {
    let (given, guard) = (RefCell::new(Vec::new()), Shared::<Guard>::default().give());
    let send = |ticket| {
        given.borrow_mut().push(ticket);
        true
    };
    let (freed, _) = table.open((LANE, Round(round)), [((0, area), guard)], true, (LANDED, &send));
    drop(freed);
    given.into_inner()
}

fn ask(table: &WindowTable, round: u64, claim: Claim) -> (bool, Freed) {
    let request = Request(put(&opened()).0);
    let (outcome, freed) = table.land(LANE, Round(round), claim, true, request, LANDED);
    (matches!(outcome, Outcome::Posted(_)), freed)
}

/// Returns a guard that was given.
fn opened() -> Shared<Guard> {
    let guard = Shared::<Guard>::default();
    guard.given.store(true, Ordering::SeqCst);
    guard
}

/// Returns a table in whose rounds 0 and 1 rank 1 has asked for the elements of a claim.
fn asked_twice(credits: usize, claim: Claim) -> WindowTable {
    let table = WindowTable::new(3, credits);
    for round in 0..2 {
        assert!(open(&table, round, area(0, 100)).is_empty());
        assert!(ask(&table, round, claim).0);
        assert!(end(&table, Round(round), LANDED).is_some());
    }
    table
}

#[test]
fn a_window_gives_tickets_for_what_was_asked_twice_and_lies_inside() {
    let wanted = claim(1, 10, 20);
    let table = asked_twice(8, wanted);
    assert!(open(&table, 2, area(0, 15)).is_empty());
    assert!(end(&table, Round(2), LANDED).is_some());
    let tickets = open(&table, 3, area(10, 20));
    assert_eq!(tickets.iter().map(|ticket| ticket.claim).collect::<Vec<_>>(), [wanted]);
    let Ticket { number, .. } = tickets[0];
    for source in [0, 2] {
        assert_eq!(table.end_ticket(number, Rank(source), TicketEnd::Used), None, "not its own");
    }
    assert!(end(&table, Round(3), LANDED).is_none());
    assert_eq!(table.end_ticket(number, Rank(1), TicketEnd::Used), Some((LANE, Round(3))));
    assert_eq!(table.end_ticket(number, Rank(1), TicketEnd::Used), None, "used twice");
    assert!(end(&table, Round(3), LANDED).is_some());
}

#[test]
fn an_operation_in_the_way_of_a_ticket_has_it_recalled_with_credit_and_without() {
    for credits in [0, 8] {
        let table = asked_twice(credits, claim(1, 10, 20));
        let tickets = open(&table, 2, area(0, 100));
        let (waiting, fate) = put(&opened());
        let (outcome, freed) = table.land(LANE, Round(2), claim(2, 19, 21), true, waiting, LANDED);
        assert_eq!(matches!(outcome, Outcome::Retry(_)), credits == 0);
        assert_eq!(freed.recalled(), [(Rank(1), tickets[0].number)]);
        // Each ticket is recalled once.
        assert!(ask(&table, 2, claim(1, 12, 13)).1.recalled().is_empty());
        assert_eq!(table.recalled_tickets(), BTreeMap::from([(Rank(1), 1)]));
        table.end_ticket(tickets[0].number, Rank(1), TicketEnd::Unused).unwrap();
        assert!(table.recalled_tickets().is_empty());
        drop(settle(&table, LANDED));
        assert_eq!(fate.counts(), (u32::from(credits > 0), 0));
    }
}

#[test]
fn wrong_guesses_become_rare() {
    let wanted = claim(1, 10, 20);
    let (table, mut given) = (asked_twice(8, wanted), 0);
    for round in 2..200 {
        let tickets = open(&table, round, area(0, 100));
        given += tickets.len();
        if let [Ticket { number, .. }] = tickets[..] {
            table.end_ticket(number, Rank(1), TicketEnd::Unused).unwrap();
        }
        assert!(ask(&table, round, wanted).0);
        assert!(end(&table, Round(round), LANDED).is_some());
    }
    assert!((2..=6).contains(&given), "{given}");
}

#[test]
fn a_failure_ends_tickets_and_windows_close() {
    let table = asked_twice(8, claim(1, 10, 20));
    let tickets = open(&table, 2, area(0, 100));
    table.fail(&"a failure".into());
    assert_eq!(table.end_ticket(tickets[0].number, Rank(1), TicketEnd::Used), None);
    assert!(end(&table, Round(2), LANDED).is_some());
}
