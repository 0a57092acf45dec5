#![allow(unsafe_code, reason = "a model shares memory to see that nobody else uses it")]
use loom::{sync::Arc, thread};

use super::*;
use talpf_primitives::UnsafeCell;

use crate::gate::{Gate, PostLimit};

const POST_LIMIT: PostLimit = PostLimit { freed: 0, limit: 8, all_or_none: false };
const DOMAIN: NonZeroU32 = NonZeroU32::MIN;

/// A table of one slot, the gate under which its key is checked, and a cell that stands for the
/// memory of the first region.
struct Scene {
    keys: KeyTable,
    gate: Gate<()>,
    memory: UnsafeCell<u32>,
}

// SAFETY: the model below checks that no two threads use the memory at the same time.
unsafe impl Sync for Scene {}

impl Scene {
    fn register(&self, length: usize) -> u32 {
        // SAFETY: nobody copies from the memory that it names.
        unsafe { self.keys.open(NonNull::dangling(), length, DOMAIN, Access::REMOTE_READ).unwrap() }
    }

    /// Uses the memory if a claim with `key` on 8 bytes passes.
    fn use_memory(&self, key: u32) -> bool {
        let Some((mut guard, _)) = self.gate.enter(0, POST_LIMIT) else {
            return false;
        };
        let (_, held) = guard.parts();
        let address = NonNull::<u8>::dangling().as_ptr() as u64;
        let claim = Claim { address, length: 8, key };
        let passes = self.keys.check(claim, DOMAIN, Access::REMOTE_READ, held).is_ok();
        if passes {
            // SAFETY: while the hold lasts the owner does not use it.
            self.memory.with_mut(|memory| unsafe { *memory += 1 });
        }
        passes
    }
}

/// The slot of a dropped region is used for the next one of the same domain while a peer has the
/// old key: uses that the old key lets through end before the owner has the memory back.
#[test]
fn loom_an_old_key_opens_neither_its_region_nor_the_next() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let (keys, gate) = (KeyTable::new(1), Gate::new(()));
        let scene = Arc::new(Scene { keys, gate, memory: UnsafeCell::new(0) });
        let old = scene.register(8);
        let peer = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || [(); 2].map(|()| scene.use_memory(old)))
        };
        scene.keys.close(old);
        scene.gate.wait_for_holder();
        // SAFETY: whoever was let through has left, and the key opens nothing any more.
        scene.memory.with_mut(|memory| unsafe { *memory += 1 });
        scene.keys.release(old, DOMAIN);
        let new = scene.register(16);
        assert_eq!(index(old), index(new));
        // SAFETY: the key of the next region is not known to the peer.
        scene.memory.with_mut(|memory| unsafe { *memory += 1 });
        let [_, later] = peer.join().unwrap();
        assert!(scene.use_memory(new), "the next region is open");
        assert!(!scene.use_memory(old) && (!later || old != new));
    });
}
