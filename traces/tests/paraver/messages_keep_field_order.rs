//! Communication lines: matches of sends and receives, and the order of their times.

use crate::support::{Trace, ended, info, recorded};
use talpf_traces::{Event, MessageKind, ValueKind, WaitNs};

fn send(rank: u32, peer: u32, message: u64, waited_ns: u64) -> Event {
    let waited = WaitNs::between(0, waited_ns);
    Event::Send { kind: MessageKind::Put, rank, peer, message, bytes: 64, waited }
}

fn receive(rank: u32, peer: u32, message: u64, round: u64) -> Event {
    Event::Receive { rank, peer, message, lane: 2, round }
}

fn messages(events: &[(u32, u64, Event)]) -> (Vec<String>, Vec<String>) {
    let trace = Trace::of(&recorded(events), &info(2, 2, 1_000));
    trace.assert_clean();
    let own = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
    (own(trace.records("3:")), own(trace.comments()))
}

#[test]
fn sender_then_receiver_each_logical_then_physical() {
    let sync = ended(1, 2, 4);
    let (lines, comments) =
        messages(&[(0, 25, send(0, 1, 9, 5)), (1, 70, receive(1, 0, 9, 4)), (0, 90, sync)]);
    assert_eq!(lines, ["3:1:1:1:1:20:25:2:1:2:2:90:70:64:4"]);
    assert!(comments.is_empty());
}

#[test]
fn only_the_same_rank_lane_and_round_covers_a_message() {
    let (lines, _) = messages(&[
        (0, 25, send(0, 1, 9, 0)),
        (1, 70, receive(1, 0, 9, 4)),
        (1, 60, ended(1, 2, 4)),
        (1, 80, ended(0, 2, 4)),
        (1, 81, ended(1, 1, 4)),
        (1, 82, ended(1, 2, 5)),
    ]);
    assert_eq!(lines, ["3:1:1:1:1:25:25:2:1:2:2:70:70:64:4"]);
}

#[test]
fn messages_are_ordered_by_their_call() {
    let (lines, _) = messages(&[
        (0, 50, send(0, 1, 1, 5)),
        (1, 60, send(1, 0, 1, 40)),
        (1, 70, receive(1, 0, 1, 0)),
        (0, 80, receive(0, 1, 1, 0)),
    ]);
    assert_eq!(lines, ["3:2:1:2:2:20:60:1:1:1:1:80:80:64:0", "3:1:1:1:1:45:50:2:1:2:2:70:70:64:0"],);
}

#[test]
fn halves_without_the_other_are_counted() {
    let (lines, comments) = messages(&[
        (0, 10, send(0, 1, 1, 0)),
        (0, 11, send(0, 1, 3, 0)),
        (1, 20, receive(1, 0, 0, 0)),
        (1, 21, receive(1, 0, 3, 0)),
        (1, 22, receive(1, 0, 4, 0)),
        (1, 23, receive(0, 1, 1, 0)),
    ]);
    assert_eq!(lines, ["3:1:1:1:1:11:11:2:1:2:2:21:21:64:0"]);
    assert_eq!(comments, ["1 sends had no receive", "3 receives had no send"]);
}

#[test]
fn reused_message_numbers_match_in_order() {
    let (lines, comments) = messages(&[
        (0, 10, send(0, 1, 1, 0)),
        (1, 15, receive(1, 0, 1, 0)),
        (0, 20, send(0, 1, 1, 0)),
        (1, 25, receive(1, 0, 1, 0)),
    ]);
    assert_eq!(lines, ["3:1:1:1:1:10:10:2:1:2:2:15:15:64:0", "3:1:1:1:1:20:20:2:1:2:2:25:25:64:0"],);
    assert!(comments.is_empty());
}

#[test]
fn arrival_before_its_call_moves_to_the_send() {
    let (lines, comments) = messages(&[
        (1, 20, receive(1, 0, 9, 4)),
        (1, 22, ended(1, 2, 4)),
        (0, 45, send(0, 1, 9, 15)),
    ]);
    assert_eq!(lines, ["3:1:1:1:1:30:45:2:1:2:2:45:45:64:4"]);
    assert_eq!(comments, ["1 receives were recorded before their send and moved to it"]);
}

#[test]
fn send_recorded_after_its_arrival_moves_to_the_arrival() {
    let (lines, comments) = messages(&[
        (1, 20, receive(1, 0, 9, 4)),
        (1, 22, ended(1, 2, 4)),
        (0, 25, send(0, 1, 9, 15)),
    ]);
    assert_eq!(lines, ["3:1:1:1:1:10:20:2:1:2:2:22:20:64:4"]);
    assert!(comments.is_empty());
}

#[test]
fn message_with_a_tag_has_four_times_and_no_round() {
    let arrived = WaitNs::between(60, 80);
    let tagged = |message, tag| Event::ReceiveTagged { rank: 1, peer: 0, message, tag, arrived };
    let (kind, waited) = (MessageKind::TwoSided, WaitNs::between(0, 5));
    let sent = Event::Send { kind, rank: 0, peer: 1, message: 1 << 60, bytes: 64, waited };
    let posted = Event::Value { rank: 1, kind: ValueKind::ReceivePosted, value: 8 };
    let trace = Trace::of(
        &recorded(&[
            (1, 10, posted),
            (0, 50, sent),
            (1, 70, ended(1, 0, 0)),
            (1, 80, tagged(1 << 60, 7)),
        ]),
        &info(2, 2, 100),
    );
    trace.assert_clean();
    assert_eq!(trace.records("3:"), ["3:1:1:1:1:45:50:2:1:2:2:80:60:64:7"]);
    let events = trace.records("2:");
    assert!(events.iter().any(|line| line.ends_with(":10:95000015:8")), "{events:?}");
    let kinds: Vec<_> = events.iter().filter(|line| line.contains(":95000013:6")).collect();
    assert_eq!(kinds.len(), 1, "{events:?}");
    assert!(!kinds[0].contains("95000014"), "no lane: {kinds:?}");
}

#[test]
fn operation_leaves_its_kind_lane_and_times_where_it_arrives() {
    let trace = Trace::of(
        &recorded(&[(0, 25, send(0, 1, 9, 5)), (1, 70, receive(1, 0, 9, 4))]),
        &info(2, 2, 100),
    );
    assert_eq!(trace.records("2:"), ["2:0:1:2:2:70:95000013:1:95000014:3:95000016:45:95000017:5"]);
}
