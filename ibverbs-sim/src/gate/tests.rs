use super::*;

#[test]
fn posts_are_granted_up_to_the_limit() {
    let gate = Gate::new(());
    let post_limit = PostLimit { freed: 0, limit: 3, all_or_none: false };
    assert_eq!(gate.enter(2, post_limit).unwrap().1, 2);
    assert_eq!(gate.enter(2, post_limit).unwrap().1, 1);
    assert_eq!(gate.enter(2, post_limit).unwrap().1, 0);
    assert_eq!(gate.enter(9, PostLimit { freed: 2, ..post_limit }).unwrap().1, 2);
    assert_eq!(gate.posted(), 5);
}

#[test]
fn counts_wrap_without_touching_each_other() {
    let gate = Gate::new(());
    gate.word.store(u64::MAX << POSTED_SHIFT | HOLDS, Ordering::SeqCst);
    let post_limit = PostLimit { freed: u32::MAX - 1, limit: 8, all_or_none: false };
    let (guard, granted) = gate.enter(3, post_limit).unwrap();
    assert_eq!((granted, gate.posted()), (3, 2));
    assert_eq!(gate.word.load(Ordering::SeqCst) & HOLDS, 0);
    drop(guard);
    assert_eq!(gate.word.load(Ordering::SeqCst) & FLAGS, 0);
}
