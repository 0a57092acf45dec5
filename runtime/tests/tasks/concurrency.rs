//! Tasks that do not conflict run at the same time: two bodies that wait for each other both go on.

use crate::common;
use talpf_runtime::{Array, Matrix, Tiling, Token};

use crate::common::{Flag, Meeting, POLICIES};

#[test]
fn writers_of_disjoint_parts_of_one_tile_run_concurrently() {
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let array = Array::new(&runtime, vec![0u8; 8], 8).unwrap();
        let meeting = Meeting::of(2);
        let halves = [0..4, 4..8].map(|half| {
            let meeting = meeting.clone();
            let task = runtime.task("half").inout(&array.region(half));
            task.run(move |_half| meeting.join()).unwrap()
        });
        for half in halves {
            assert!(runtime.block_on(half).unwrap().unwrap(), "{policy}");
        }
    }
}

#[test]
fn readers_of_one_region_run_concurrently() {
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let matrix = Matrix::new(&runtime, vec![0u8; 8], 4, Tiling::default()).unwrap();
        let meeting = Meeting::of(2);
        let readers = [(), ()].map(|()| {
            let meeting = meeting.clone();
            runtime.task("reader").input(&matrix.all()).run(move |_all| meeting.join()).unwrap()
        });
        for reader in readers {
            assert!(runtime.block_on(reader).unwrap().unwrap(), "{policy}");
        }
    }
}

#[test]
fn all_successors_of_one_task_run_concurrently() {
    for policy in POLICIES {
        let runtime = common::unwatched(2, policy);
        let token = Token::new(&runtime).unwrap();
        let spawned = Flag::default();
        let (meeting, go) = (Meeting::of(2), spawned.clone());
        runtime
            .task("first")
            .output(&token.region())
            .spawn(move |_token| assert!(common::eventually(|| go.is_set())))
            .unwrap();
        let successors = [(), ()].map(|()| {
            let meeting = meeting.clone();
            let task = runtime.task("second").input(&token.region());
            task.run(move |_token| meeting.join()).unwrap()
        });
        spawned.set();
        for successor in successors {
            assert!(runtime.block_on(successor).unwrap().unwrap(), "{policy}");
        }
    }
}
