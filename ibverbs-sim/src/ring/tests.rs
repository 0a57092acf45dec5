use super::*;

#[test]
fn arming_fires_for_what_it_asked() {
    let ring = Ring::new(4);
    assert!(!ring.arm(ARMED_SOLICITED));
    assert_eq!(ring.push(1, ARMED_ANY), Ok(false));
    assert_eq!(ring.push(2, ARMED_ANY | ARMED_SOLICITED), Ok(true));
    assert_eq!(ring.push(3, ARMED_ANY | ARMED_SOLICITED), Ok(false));
    // Everything is published: `arm` has nothing to report.
    assert!(!ring.arm(ARMED_ANY));
    assert_eq!(ring.push(4, ARMED_ANY), Ok(true));
    assert_eq!(ring.push(5, 0), Err(Full));
}

#[test]
fn batches_go_in_and_out_as_far_as_there_is_room() {
    let ring = Ring::new(4);
    for lap in 0..10 {
        assert_eq!(ring.push_many(3, |nth, _| lap + nth as u32), 3);
        assert_eq!(ring.push_many(3, |nth, _| lap + 3 + nth as u32), 1);
        assert_eq!(ring.push_many(1, |_, _| 0), 0);
        let mut seen = Vec::new();
        assert_eq!(ring.pop_many(2, |_, value| seen.push(value)), 2);
        assert_eq!(ring.pop_many(9, |_, value| seen.push(value)), 2);
        assert_eq!(ring.pop_many(9, |_, _| unreachable!()), 0);
        assert!(seen.into_iter().eq(lap..lap + 4));
    }
}
