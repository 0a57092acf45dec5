use loom::{model, sync::Arc, thread};

use super::*;

/// A failure and a cut-off context stay, regardless of the transition they coincide with.
#[test]
fn loom_a_transition_undoes_neither_a_failure_nor_a_cut() {
    model(|| {
        let state = Arc::new(StateCell::new());
        state.set(QueuePairState::ReadyToReceive);
        let failing = {
            let state = Arc::clone(&state);
            thread::spawn(move || while !state.change(state.load(), QueuePairState::Error) {})
        };
        let cutting = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.cut_off())
        };
        state.change(QueuePairState::ReadyToReceive, QueuePairState::ReadyToSend);
        failing.join().unwrap();
        cutting.join().unwrap();
        assert_eq!(state.load(), QueuePairState::Error);
        assert!(state.is_cut_off() && !state.responds());
        assert_eq!(state.set(QueuePairState::Reset), QueuePairState::Error);
        assert!(state.is_cut_off());
    });
}
