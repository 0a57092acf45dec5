#![allow(unsafe_code, reason = "a model shares memory to see that nobody else uses it")]
use loom::{model, sync::Arc, thread};
use talpf_primitives::UnsafeCell;

use super::super::cell::{CellKind, write_short};
use super::super::credits::Credits;
use super::*;
use crate::matching::Key;
use crate::rank::Rank;
use crate::tag::Tag;
use crate::transport::ContextId;

const KEY: Key = Key { context: ContextId(0), source: Rank(0), tag: Tag(0) };

/// Number of the first cell. Numbers of cells and halves of the credits wrap two cells after it. No
/// line of the ring has been written yet.
const START: u64 = u32::MAX as u64 - 1;

/// A ring, the word of its credits at the peer, and for each cell a value that stands for the bytes
/// that are not read word by word.
struct Scene {
    ring: RingBuffer,
    credits: AtomicU64,
    bytes: [UnsafeCell<u64>; CELLS],
}

// SAFETY: the models check that no two threads use the bytes of a cell at once.
unsafe impl Sync for Scene {}

impl Scene {
    fn new() -> Arc<Self> {
        let credits = AtomicU64::new(Credits::word(START, 0));
        let bytes = std::array::from_fn(|_| UnsafeCell::new(0));
        let scene = Scene { ring: RingBuffer::new(), credits, bytes };
        scene.ring.skip_to(START);
        Arc::new(scene)
    }

    fn fill(&self, number: u64) {
        let bytes = &self.bytes[number as usize % CELLS];
        // SAFETY: the peer writes to cells that are free.
        bytes.with_mut(|bytes| unsafe { *bytes = number });
    }

    /// Writes a cell with its number as message, as the peer's device does.
    fn write(&self, number: u64) {
        self.fill(number);
        let mut words = [0; WORDS];
        write_short(&mut words, number, &KEY, &number.to_ne_bytes());
        self.write_words(number, &words);
    }

    fn write_words(&self, number: u64, words: &[u64; WORDS]) {
        let (last, first) = self.ring.line(number).0.split_last().unwrap();
        first.iter().zip(words).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        last.store(words[WORDS - 1], Ordering::Release);
    }

    fn has_room(&self, tail: u64) -> bool {
        Credits::load(&self.credits).has_room(tail, 1)
    }

    /// Uses the next cell, if it is there, and takes it.
    fn take(&self) -> Option<u64> {
        let head = self.ring.next()?;
        assert_eq!((head.kind(), head.length(), head.count()), (Some(CellKind::Eager), 8, 1));
        let number = self.ring.head();
        assert_eq!(self.ring.cell().0[0], number, "another cell is in its place");
        let bytes = &self.bytes[number as usize % CELLS];
        // SAFETY: the stamp says that they are written, and the cell is not reported to the peer
        // yet.
        assert_eq!(bytes.with_mut(|bytes| unsafe { *bytes }), number);
        self.ring.take(1);
        Some(number)
    }

    /// Reports the credits to the peer, as the device does.
    fn report_credits(&self) {
        self.credits.store(Credits::word(self.ring.head(), 0), Ordering::Release);
    }
}

/// Cells are seen whole, in order and once, and none before it is written: neither in a line that
/// was never written, nor where the numbers wrap.
#[test]
fn loom_a_cell_is_seen_once_it_is_whole() {
    model(|| {
        let scene = Scene::new();
        let peer = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || (START..START + 3).for_each(|number| scene.write(number)))
        };
        let mut seen: Vec<_> = (0..2).filter_map(|_| scene.take()).collect();
        peer.join().unwrap();
        seen.extend(std::iter::from_fn(|| scene.take()));
        assert!(seen.into_iter().eq(START..START + 3));
    });
}

/// A full ring: a line is written again only once its cell was taken.
#[test]
fn loom_a_place_is_written_again_after_its_cell_was_taken() {
    model(|| {
        let scene = Scene::new();
        let (end, more) = (START + CELLS as u64, START + CELLS as u64 + 2);
        (START..end).for_each(|number| scene.write(number));
        assert!(!scene.has_room(end));
        let peer = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let mut tail = end;
                for _ in 0..2 {
                    if scene.has_room(tail) {
                        scene.write(tail);
                        tail += 1;
                    }
                }
                tail
            })
        };
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.extend(scene.take());
            scene.report_credits();
        }
        let tail = peer.join().unwrap();
        assert!(tail <= more);
        seen.extend(std::iter::from_fn(|| scene.take()));
        assert!(seen.into_iter().eq(START..tail));
        scene.report_credits();
        assert!(scene.has_room(tail + CELLS as u64 - 1) && !scene.has_room(tail + CELLS as u64));
    });
}

/// A message whose bytes equal the stamps of the cells of the next lap: they are not taken for
/// cells, and the stamps of real cells are not cleared.
#[test]
fn loom_bytes_of_a_message_are_not_taken_for_cells() {
    model(|| {
        let scene = Scene::new();
        let number = START + 1;
        let next_lap = |place: u64| [u64::from(stamp(place + CELLS as u64)); WORDS];
        scene.write(START);
        for place in number + 1..number + 3 {
            scene.write_words(place, &next_lap(place));
        }
        scene.write(number);
        assert_eq!(scene.take(), Some(START));
        scene.report_credits();
        let peer = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let mut tail = number + 3;
                for _ in 0..3 {
                    if scene.has_room(tail) {
                        scene.write(tail);
                        tail += 1;
                    }
                }
                tail
            })
        };
        assert!(scene.ring.next().is_some());
        scene.ring.take(3);
        scene.report_credits();
        let mut seen: Vec<_> = scene.take().into_iter().collect();
        let tail = peer.join().unwrap();
        seen.extend(std::iter::from_fn(|| scene.take()));
        assert!(seen.into_iter().eq(number + 3..tail));
    });
}
