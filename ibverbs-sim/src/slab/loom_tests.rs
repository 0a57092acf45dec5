use loom::{model, sync::Arc, thread};

use super::*;

/// No index has two owners, and no more indices are given out than the limit allows.
#[test]
fn loom_an_index_has_one_owner() {
    model(|| {
        let slab = Arc::new(Slab::<u8>::new(2));
        let (first, _) = slab.allocate(1).unwrap();
        let others = [1, 2].map(|user| {
            let slab = Arc::clone(&slab);
            thread::spawn(move || slab.allocate(user).map(|(index, _)| index))
        });
        slab.release(first, 1);
        let mut given: Vec<_> =
            others.into_iter().filter_map(|other| other.join().unwrap()).collect();
        given.extend(std::iter::from_fn(|| slab.allocate(3).map(|(index, _)| index)));
        given.sort_unstable();
        assert_eq!(given, [0, 1]);
    });
}
