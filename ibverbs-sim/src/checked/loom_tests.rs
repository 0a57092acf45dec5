#![allow(unsafe_code, reason = "a model shares memory to see that nobody else uses it")]
use loom::{model, sync::Arc, thread};

use super::*;
use talpf_primitives::UnsafeCell;

use crate::gate::{Gate, PostLimit};

const POST_LIMIT: PostLimit = PostLimit { freed: 0, limit: 8, all_or_none: false };

fn domain(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// A slot, the gates of two domains, and a cell that stands for the memory of its region.
struct Scene {
    slot: RegionSlot,
    gates: [Gate<()>; 2],
    memory: UnsafeCell<u32>,
}

// SAFETY: the model below checks that no two threads use the memory at the same time.
unsafe impl Sync for Scene {}

impl Scene {
    /// Returns `true` if a claim with the key of the first region passes for a domain. If it does,
    /// the memory is used.
    fn use_memory(&self, user: u32) -> bool {
        let Some((mut guard, _)) = self.gates[user as usize - 1].enter(0, POST_LIMIT) else {
            return false;
        };
        let (_, held) = guard.parts();
        let claim = Claim { address: NonNull::<u8>::dangling().as_ptr() as u64, length: 8, key: 5 };
        let passes = self.slot.check(claim, domain(user), Access::REMOTE_READ, held).is_ok();
        if passes {
            // SAFETY: while the hold lasts the owner does not use it.
            self.memory.with_mut(|memory| unsafe { *memory += 1 });
        }
        passes
    }

    /// Opens the slot for a domain. Nothing is copied from the memory that it names.
    fn open(&self, key: u32, owner: u32) {
        // SAFETY: see above; the slot is closed.
        unsafe {
            self.slot.open(key, NonNull::dangling(), 8, domain(owner), Access::REMOTE_READ);
        }
    }
}

/// A slot that goes from one domain to another is closed to the holders of gates of the other.
#[test]
fn loom_a_claim_is_checked_against_one_region() {
    model(|| {
        let scene = Arc::new(Scene {
            slot: RegionSlot::default(),
            gates: [Gate::new(()), Gate::new(())],
            memory: UnsafeCell::new(0),
        });
        scene.open(5, 1);
        let users = [1, 2].map(|user| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.use_memory(user))
        });
        scene.slot.close();
        scene.gates[0].wait_for_holder();
        // SAFETY: the gate that uses it was waited for, and finds the slot closed to it.
        scene.memory.with_mut(|memory| unsafe { *memory += 1 });
        scene.open(6, 2);
        let [_, other] = users.map(|user| user.join().unwrap());
        assert!(!other, "the key was of a region of another domain");
    });
}
