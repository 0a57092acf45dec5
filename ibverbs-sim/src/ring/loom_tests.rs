use loom::{model, sync::Arc, thread};

use super::*;

fn pop_all(ring: &Ring<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    ring.pop_many(8, |_, value| all.push(value));
    all
}

#[test]
fn loom_entries_of_two_pushers_arrive_once_and_in_each_ones_order() {
    model(|| {
        let ring = Arc::new(Ring::new(4));
        let pusher = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push(10, 0).unwrap();
                ring.push(11, 0).unwrap();
            })
        };
        ring.push(20, 0).unwrap();
        let mut seen = pop_all(&ring);
        pusher.join().unwrap();
        seen.extend(pop_all(&ring));
        assert_eq!(seen.iter().filter(|&&value| value >= 20).count(), 1);
        assert!(seen.into_iter().filter(|&value| value < 20).eq([10, 11]));
    });
}

#[test]
fn loom_two_poppers_share_what_is_there() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        ring.push(1, 0).unwrap();
        ring.push(2, 0).unwrap();
        let popper = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.pop(|_, value| value))
        };
        let here = ring.pop(|_, value| value);
        let there = popper.join().unwrap();
        assert_eq!(here.into_iter().chain(there).sum::<u32>(), 3);
        assert_eq!(ring.push(3, 0), Ok(false));
    });
}

#[test]
fn loom_a_slot_is_filled_again_only_after_its_entry_was_taken() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        ring.push(1, 0).unwrap();
        ring.push(2, 0).unwrap();
        let pusher = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.push(3, 0).is_ok())
        };
        let mut seen = vec![ring.pop(|_, value| value).unwrap()];
        let pushed = pusher.join().unwrap();
        seen.extend(pop_all(&ring));
        assert_eq!(seen, if pushed { vec![1, 2, 3] } else { vec![1, 2] });
    });
}

/// The owner arms and polls; if it finds nothing and `arm` did not report an entry, a push must
/// fire. Otherwise the owner would sleep with an entry in the queue.
#[test]
fn loom_no_entry_is_slept_through() {
    model(|| {
        let ring = Arc::new(Ring::new(4));
        let pushers: Vec<_> = [1, 2]
            .map(|value| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || ring.push(value, ARMED_ANY).unwrap())
            })
            .into();
        let must_poll_again = ring.arm(ARMED_ANY);
        let found = pop_all(&ring);
        let fired = pushers.into_iter().map(|pusher| pusher.join().unwrap());
        let fired = fired.filter(|&fired| fired).count();
        assert!(fired <= 1, "one arming fires once");
        assert!(!found.is_empty() || must_poll_again || fired == 1);
    });
}
