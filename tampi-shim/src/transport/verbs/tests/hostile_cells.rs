//! Cells of any content: no number that a peer sends ends an operation of another peer, and nothing
//! panics.
#![allow(unsafe_code, reason = "starts operations on vectors")]

use proptest::sample::select;

use super::*;
use crate::buffer::sealed::Memory;
use crate::matching::EntryId;
use crate::select::Select;
use crate::transport::{OperationId, Outgoing, Peer, SendMode, Start, Wanted};

const LENGTH: usize = 4096;
/// Rank that sends hostile cells.
const HOSTILE: u32 = 0;
/// Rank that takes them.
const TARGET: u32 = 1;
/// Rank that does neither.
const OTHER: u32 = 2;

fn peer(rank: u32) -> Peer {
    Peer { rank: Rank(rank), world: WorldRank(rank) }
}

/// Three ranks without polling tasks. The second has a receive from each of the others, with an RTR
/// there, and a send to the first.
struct Scene {
    world: Arc<World>,
    target: Verbs,
    starts: Vec<Start>,
    buffers: Vec<Vec<u8>>,
    _runtime: Runtime,
}

impl Scene {
    fn new() -> Self {
        let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
        let groups = (0..3).map(|number| runtime.group("rank", number)).collect();
        let protocols = Protocols { eager: 40, lazy: 0, rtr: 2000 };
        let world = World::new(&Config::default(), protocols, groups).expect("a world");
        let target = Verbs { world: Arc::clone(&world), rank: WorldRank(TARGET) };
        let mut buffers = vec![vec![7; LENGTH]; 3];
        let mut starts = Vec::new();
        for (buffer, from) in buffers.iter_mut().zip([HOSTILE, OTHER]) {
            let source = Select::Only(peer(from));
            let tag = Select::Only(Tag(0));
            let wanted = Wanted { context: ContextId(0), source, tag, is_awaited: false };
            // SAFETY: the vector is kept until all operations have ended (`Drop`), and not used
            // before.
            starts.push(unsafe { target.receive(&wanted, buffer.layout()) });
        }
        let destination = peer(HOSTILE);
        let (context, source, tag) = (ContextId(0), Rank(TARGET), Tag(0));
        let mode = SendMode::Standard;
        let message = Outgoing { context, source, destination, tag, mode };
        // SAFETY: as above.
        starts.push(unsafe { target.send(&message, buffers[2].layout()) });
        Scene { world, target, starts, buffers, _runtime: runtime }
    }

    /// Returns the numbers of the receives.
    fn receives(&self) -> Vec<u64> {
        let number = |start: &Start| match start {
            Start::UnderWay { operation: OperationId(number), .. } => *number,
            _ => panic!("it has ended"),
        };
        self.starts[..2].iter().map(number).collect()
    }

    /// Writes a cell from the first rank to the second, which takes it.
    fn arrives(&self, mut words: [u64; 8]) {
        let (link, _) = both_ends(&self.world);
        // The stamp is the sender's to give.
        words[7] &= !u64::from(u32::MAX);
        link.sender.lock().writer.write(link, Cell(words)).expect("a write");
        for _ in 0..3 {
            self.target.progress();
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.world.end_all(&crate::error::Error::Abandoned);
        self.starts.clear();
        self.buffers.clear();
    }
}

/// Generates a word of a cell: one with a meaning, a small one, or any.
fn word() -> impl Strategy<Value = u64> {
    let edges = [0, 1, 40, 41, 4096, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 63, u64::MAX];
    prop_oneof![
        4 => select(edges.to_vec()),
        1 => any::<u64>(),
        2 => (0..4u64, 0..4096u64).prop_map(|(high, low)| high << 32 | low),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn cells_of_any_content_end_nothing_of_others(
        cells in prop::collection::vec((prop::array::uniform8(word()), 0..12u64, 0..256u64), 1..8),
        names_receive in any::<bool>(),
    ) {
        let scene = Scene::new();
        let receives = scene.receives();
        for (mut words, kind, count) in cells {
            words[7] = kind << 32 | count << 40;
            if names_receive {
                words[0] = receives[1];
            }
            // The sender writes the source of a message: ranks of one process trust each other in
            // that, and a message with the number of the other rank would be matched as its
            // message.
            if words[5] >> 32 == u64::from(OTHER) {
                words[5] &= u64::from(u32::MAX);
            }
            scene.arrives(words);
            if scene.world.has_failed() {
                break;
            }
            // The receive from the rank that has sent nothing still waits.
            let mut inbox = scene.target.state().inbox.lock();
            let id = EntryId::from_u64(receives[1]);
            prop_assert!(inbox.matcher.receive_mut(id).is_some());
        }
    }
}

/// Each control message that names a receive has an effect only from the peer that has its RTR.
#[test]
fn a_receive_is_matched_and_cancelled_only_by_the_peer_that_has_its_rtr() {
    for kind in [CellKind::RtrMatched, CellKind::FinReceive, CellKind::CancelAck] {
        let scene = Scene::new();
        let waits = |number: u64| {
            let mut inbox = scene.target.state().inbox.lock();
            inbox.matcher.receive_mut(EntryId::from_u64(number)).is_some()
        };
        let [own, other] = scene.receives().try_into().expect("two receives");
        for number in [other, own] {
            scene.arrives([number, 8, 0, 0, 0, 0, 0, (kind as u64) << 32]);
        }
        assert!(waits(other), "{kind:?}");
        assert_eq!(waits(own), kind == CellKind::FinReceive, "{kind:?}");
    }
}

/// A layout with a stride so large that its addresses wrap.
#[test]
fn a_stride_that_overflows_is_refused() {
    let scene = Scene::new();
    let remote = [64, 512 | 4 << 32, 1024, u64::MAX / 2];
    let [address, key_and_rows, row_bytes, stride_bytes] = remote;
    let last = (CellKind::Rts as u64) << 32;
    scene.arrives([address, key_and_rows, row_bytes, stride_bytes, 9, 0, 0, last]);
    assert!(scene.world.has_failed());
}
