//! A process leaves when all are done; one that vanishes is a failure of the others.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::changed_wire::{ChangedWire, Changes};
use crate::common::{self, Gate};
use ibverbs_sim::{SocketWire, Wire};
use integer_encoding::VarInt;
use talpf::{Error, Rank, SyncMode};

/// Rank 1 uses the memory of rank 0 after the main of that has ended.
#[test]
fn a_rank_that_is_done_serves_the_others() {
    let gate = Gate::default();
    let ends = common::run(common::config(2, 1), |ctx| {
        let gate = gate.clone();
        async move {
            let values = common::array(&ctx, vec![u64::from(ctx.rank().0); 50])?;
            let slot = ctx.register_global(&values).await?;
            if ctx.rank() == Rank(0) {
                ctx.sync(SyncMode::msg(1)).expose(&values.all()).spawn()?;
                gate.open();
                return Ok(vec![]);
            }
            gate.passed().await;
            let copy = common::array(&ctx, vec![9; 50])?;
            ctx.register_local(&copy)?;
            ctx.get(slot.at(Rank(0), 0), &copy.all())?;
            ctx.sync(SyncMode::msg(0)).await?;
            common::read(&ctx, &copy).await
        }
    });
    assert_eq!(ends.unwrap()[1], [0; 50]);
}

/// A put that no round of its target takes ends with the run, as in one process.
#[test]
fn a_put_that_nobody_takes_keeps_nobody() {
    for len in [1, 1_000] {
        let ends = common::run(common::config(2, 1), move |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64; len])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                let values = vec![1; len];
                let values = common::array(&ctx, values)?;
                ctx.register_local(&values)?;
                ctx.put(&values.region(..1), slot.at(Rank(1), 0))?;
                ctx.sync(SyncMode::msg(0)).await?;
            }
            Ok(())
        });
        ends.unwrap();
    }
}

#[test]
fn a_process_that_vanishes_fails_the_others() {
    let mut wires = SocketWire::mesh(3).unwrap();
    drop(wires.pop());
    let wires = wires.into_iter().map(|wire| Arc::new(wire) as Arc<dyn Wire>);
    let ranks = wires.map(|wire| (wire, common::unwatched(3, 1))).collect();
    let ends = common::on_wires(ranks, |ctx| async move { ctx.sync(SyncMode::DEFAULT).await });
    for end in ends {
        let error = end.unwrap_err();
        assert!(matches!(error, Error::PeerFailed { .. }), "{error}");
        common::says(&error, &["its process has ended"]);
    }
}

/// The first may only have ended because of the second.
#[test]
fn processes_that_vanish_together_are_all_named() {
    let mut wires = SocketWire::mesh(4).unwrap();
    wires.truncate(2);
    let wires = wires.into_iter().map(|wire| Arc::new(wire) as Arc<dyn Wire>);
    let ranks = wires.map(|wire| (wire, common::unwatched(4, 1))).collect();
    let ends = common::on_wires(ranks, |ctx| async move { ctx.sync(SyncMode::DEFAULT).await });
    for end in ends {
        let error = end.unwrap_err();
        assert!(matches!(error, Error::PeerFailed { rank: Rank(2), .. }), "{error}");
        assert!(
            error.to_string().ends_with("its process has ended, and so has process 3"),
            "{error}"
        );
    }
}

/// The number of the last ask.
const LAST: u32 = 200;

/// A delay of the answer to ask [`LAST`].
struct Slow;

impl Changes for Slow {
    fn before_send(&self, packet: &[u8]) {
        // A datagram that lets an operation land, and its number.
        if packet == [&[0, 1][..], &numbers([0, 1, LAST.into()])].concat() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The version of control messages, and words that say where a process is.
const VERSION: u32 = 13;
const PLACEMENT: usize = 35;

/// Makes a message of the rail of packets, with one packet of the device.
fn framed(packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let header = 1u64 | 1 << 8 | u64::from(4 + length) << 32;
    [&header.to_le_bytes()[..], &length.to_le_bytes(), packet].concat()
}

/// Makes a message with a datagram of rank 1 for rank 0: its kind, and what follows the ranks.
fn datagram(kind: u8, bytes: &[u8]) -> Vec<u8> {
    framed(&[&[0, kind, 1, 0], bytes].concat())
}

/// Makes a message with the part of rank 1 in a collective call.
fn gathered(call: u64, part: &[u8]) -> Vec<u8> {
    let ranks = [1u32, 0].map(u32::to_le_bytes).concat();
    framed(&[&[0, 3], &*ranks, &call.to_le_bytes(), &[0, 0], part].concat())
}

/// Returns numbers as control messages have them.
fn numbers<const COUNT: usize>(numbers: [u64; COUNT]) -> Vec<u8> {
    numbers.into_iter().flat_map(VarInt::encode_var_vec).collect()
}

/// Rank 1 sends many window requests to rank 0, whose program has ended, then its last message, and
/// vanishes. One worker of rank 0 still answers when others see that.
#[test]
fn a_process_that_vanishes_after_its_last_message_fails_nobody() {
    for _ in 0..40 {
        let [first, forger] = SocketWire::mesh(2).unwrap().try_into().ok().unwrap();
        let config = common::config(2, 3);
        let send = move |message| forger.send(0, message);
        let (credits, check_conflicts) = (config.credits as u32, config.check_conflicts);
        let forged = thread::spawn(move || {
            let settings = [VERSION, 2, credits, u32::from(check_conflicts), 0, 0, 0];
            let words = settings.into_iter().chain(std::iter::repeat_n(0, PLACEMENT));
            send(gathered(0, &words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()));
            send(gathered(1, &[]));
            for number in 0..=LAST {
                common::spin(Duration::from_micros(20));
                send(datagram(0, &window_request(number, true, 0)));
            }
            common::spin(Duration::from_millis(1));
            send(datagram(5, &[]));
        });
        let ranks = vec![(Arc::new(ChangedWire::new(first, Slow)) as Arc<dyn Wire>, config)];
        let ends = common::on_wires(ranks, async |_| Ok(()));
        forged.join().unwrap();
        ends.into_iter().for_each(Result::unwrap);
    }
}

/// Returns the window request of rank 1 for a put to element 0 of slot 0 at rank 0, in lane 0.
fn window_request(number: u32, raw: bool, round: u64) -> Vec<u8> {
    // Number, lane, target and round; kind with `raw`, source and slot; first element and number of
    // elements.
    let claim = [2 | u8::from(raw) << 7, 1, 0, 0, 1];
    [&numbers([number.into(), 0, 0, round])[..], &claim].concat()
}

/// Returns the eager put of rank 1, of eight bytes, with the claim of a window request.
fn eager_put(window_request: Vec<u8>) -> Vec<u8> {
    // Address and key.
    [&window_request[..], &numbers([4096, 0]), &[7; 8]].concat()
}

/// Returns the error of rank 0 after these messages of rank 1, whose process ends with the program of rank 0, since
/// a process that fails waits for the others.
fn error_after(messages: Vec<Vec<u8>>) -> Error {
    let [first, forger] = SocketWire::mesh(2).unwrap().try_into().ok().unwrap();
    messages.into_iter().for_each(|message| forger.send(0, message));
    let forger = Mutex::new(Some(forger));
    let ranks = vec![(Arc::new(first) as Arc<dyn Wire>, common::unwatched(2, 1))];
    let mut ends = common::on_wires(ranks, |ctx| {
        let forger = forger.lock().unwrap().take();
        async move {
            let end = ctx.sync(SyncMode::DEFAULT).await;
            drop(forger);
            end
        }
    });
    ends.remove(0).unwrap_err()
}

#[test]
fn bytes_that_are_no_control_message_fail_the_run() {
    // A datagram of the device, and something that not even that is.
    error_after([vec![0, 77], vec![99]].map(|packet| framed(&packet)).to_vec());
}

/// The second name is that of the first, or is longer than the text.
#[test]
fn names_that_nobody_can_publish_fail_the_run() {
    let name = |bytes: u32, text: &str| {
        datagram(17, &[&numbers([0, bytes.into()])[..], text.as_bytes()].concat())
    };
    let long = "n".repeat(256);
    for (names, says) in [
        (vec![name(2, "inu64"), name(2, "inf64")], "rank 1 has published `in` before"),
        (vec![name(6, "inu64")], "a name of 6 bytes in a text of 5"),
        (vec![name(1, "äu64")], "a name of 1 bytes in a text of 5"),
        (vec![name(256, &long)], "has 256 bytes, expected at most 255"),
    ] {
        crate::in_one_process::says(&error_after(names), &["rank 1 has sent", says]);
    }
}

/// Only process 0 asks for times, and in a run that is traced.
#[test]
fn times_that_nobody_wants_fail_the_run() {
    for (kind, length, says) in [
        (14, 1, "a question for the time, which is not its to ask"),
        (15, 2, "a time that nobody has asked for"),
        (16, 3, "a reading of the clock that nobody has asked for"),
    ] {
        let error = error_after(vec![datagram(kind, &vec![0; length])]);
        crate::in_one_process::says(&error, &["rank 1 has sent", says]);
    }
}

/// A round that no program can have come to.
#[test]
fn operations_of_a_distant_round_fail_the_run() {
    let request = window_request(0, false, 1 << 60);
    for message in [datagram(0, &request), datagram(7, &eager_put(request))] {
        crate::in_one_process::says(
            &error_after(vec![message]),
            &[
                "rank 1 is in round 1152921504606846976 of lane 0 and rank 0 in round 0: ranks may be at most 1024",
            ],
        );
    }
}

/// The claim is that of an operation without a window, which no eager put has.
#[test]
fn an_eager_put_with_the_claim_of_something_else_fails_the_run() {
    let put = eager_put(window_request(0, true, 0));
    let error = error_after(vec![datagram(7, &put)]);
    let says = "a put with the claim of something else";
    crate::in_one_process::says(&error, &["rank 1 has sent", says]);
}

#[test]
fn tickets_that_nobody_has_given_fail_the_run() {
    let ticket = |kind: u8| [&numbers([3, 0, 0, 0])[..], &[kind, 0, 0, 0, 9]].concat();
    for (message, says) in [
        (datagram(21, &[0, 5]), "ticket 5, which this rank has not given it or which has ended"),
        (datagram(21, &[2, 5]), "a control message that is malformed or not allowed"),
        (datagram(19, &ticket(0)), "a ticket for something else than a put"),
        (datagram(19, &ticket(2 | 1 << 7)), "a ticket for something else than a put"),
    ] {
        crate::in_one_process::says(&error_after(vec![message]), &["rank 1 has sent", says]);
    }
}

/// The claims are those of puts, or no atomic is under way.
#[test]
fn atomics_that_are_none_fail_the_run() {
    let atomic = |kind: u8, change: &[u8]| {
        let claim = [kind, 1, 0, 0, 1];
        let (head, remote) = (numbers([3, 0, 0, 0]), numbers([4096, 0]));
        datagram(23, &[&head[..], &claim, &remote, change].concat())
    };
    for (message, says) in [
        (atomic(2, &[0, 1]), "an atomic with the claim of something else"),
        (atomic(1 | 1 << 7, &[0, 1]), "an atomic with the claim of something else"),
        (atomic(1, &[2, 1]), "a control message that is malformed or not allowed"),
        (atomic(1, &[1, 1]), "a control message that is malformed or not allowed"),
        (datagram(24, &[7, 1]), "the result of atomic 7, which is not under way"),
    ] {
        crate::in_one_process::says(&error_after(vec![message]), &["rank 1 has sent", says]);
    }
}

/// Words too few or too many, with settings that fit.
#[test]
fn a_beginning_of_another_length_fails_the_run() {
    // Side by side: each waits a while for the rank that does not come.
    thread::scope(|scope| {
        for words in [0, PLACEMENT - 1, PLACEMENT + 1] {
            scope.spawn(move || begins_with(words));
        }
    });
}

/// Begins a run in which rank 1 sends a placement of `words`.
fn begins_with(words: usize) {
    let mut wires = SocketWire::mesh(2).unwrap();
    let forger = wires.pop().unwrap();
    let config = common::unwatched(2, 1);
    let conflicts = u32::from(config.check_conflicts);
    let settings = [VERSION, 2, config.credits as u32, conflicts, 0, 0, 0];
    let words = settings.into_iter().chain(std::iter::repeat_n(0, words));
    let part: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    forger.send(0, gathered(0, &part));
    let wire = Arc::new(wires.pop().unwrap()) as Arc<dyn Wire>;
    let ends = common::on_wires(vec![(wire, config)], async |_| Ok(()));
    drop(forger);
    let says = format!("{} bytes in the handshake, not 168", part.len());
    crate::in_one_process::says(ends[0].as_ref().unwrap_err(), &["rank 1", &says]);
}

/// Rank 1 ends when rank 0 still needs it, for one more round.
#[test]
fn a_sync_without_a_rank_that_has_ended_fails_and_names_it() {
    let msg = SyncMode::msg(0);
    for (mode, last) in [
        (SyncMode::DEFAULT, SyncMode::DEFAULT),
        (SyncMode::CACHED, SyncMode::CACHED),
        (msg.with_barrier(), msg.with_barrier()),
        (msg, SyncMode::msg(1)),
    ] {
        let ends = common::run_all(common::unwatched(2, 1), move |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            let value = common::array(&ctx, vec![7u64])?;
            let puts = ctx.rank() == Rank(1) && mode == SyncMode::CACHED;
            for _ in 0..2 {
                if puts {
                    ctx.put(&value.all(), slot.at(Rank(0), 0))?;
                }
                ctx.sync(mode).window(&inbox.all()).await?;
            }
            match ctx.rank() {
                Rank(0) => ctx.sync(last).window(&inbox.all()).await,
                _ => Ok(()),
            }
        });
        let error = ends[0].as_ref().unwrap_err();
        assert!(matches!(error, Error::PeerFailed { rank: Rank(1), .. }), "{last}: {error}");
        let texts = ["it has ended", "a sync of lane 0 round 2 waits for it"];
        crate::in_one_process::says(error, &texts);
    }
}

/// Rank 1 ends one round before the others, most of which it does not meet in a step.
#[test]
fn a_rank_that_has_ended_fails_those_that_it_sends_nothing_to() {
    for mode in [SyncMode::DEFAULT, SyncMode::msg(0).with_barrier()] {
        let ends = common::run_all(common::unwatched(6, 1), move |ctx| async move {
            let rounds = if ctx.rank() == Rank(1) { 1 } else { 2 };
            for _ in 0..rounds {
                ctx.sync(mode).await?;
            }
            Ok(())
        });
        for (rank, end) in ends.iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let error = end.as_ref().unwrap_err();
            assert!(matches!(error, Error::PeerFailed { .. }), "rank {rank}, {mode}: {error}");
            let texts = ["rank 1", "it has ended", "a sync of lane 0 round 1 waits for it"];
            crate::in_one_process::says(error, &texts);
        }
    }
}

/// Rank 0 ends at once; rank 1 has only itself to wait for.
#[test]
fn a_rank_that_puts_to_itself_waits_for_none_that_has_ended() {
    for mode in [SyncMode::msg(1), SyncMode::msg(1).with_ack()] {
        for len in [1, 2 * common::COPIED] {
            common::run(common::unwatched(2, 2), move |ctx| async move {
                let inbox = common::array(&ctx, vec![0u64; len])?;
                let slot = ctx.register_global(&inbox).await?;
                let value = common::array(&ctx, vec![7u64; len])?;
                let rounds = if ctx.rank() == Rank(1) { 3_000 } else { 0 };
                for _ in 0..rounds {
                    ctx.put(&value.all(), slot.at(Rank(1), 0))?;
                    ctx.sync(mode).window(&inbox.all()).spawn()?;
                    let task = ctx.group().task("compute").inout(&value.all()).input(&inbox.all());
                    task.spawn(|mut value, inbox| value[0] = inbox[0] + 1)?;
                }
                ctx.group().wait().await?;
                Ok::<_, Error>(())
            })
            .unwrap_or_else(|error| panic!("{mode}, {len} numbers: {error}"));
        }
    }
}
