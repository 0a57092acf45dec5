//! Random BSP programs against a sequential oracle, through the interface of C.
#![allow(
    unsafe_code,
    clippy::multiple_unsafe_ops_per_block,
    reason = "functions of the interface for C, whose contract is the same for all"
)]

use std::ffi::c_void;
use std::thread;

use lpf::abi::{
    Args, Code, Handle, Init, LPF_MSG_DEFAULT, LPF_NO_ARGS, LPF_SYNC_DEFAULT, Pid, lpf_get,
    lpf_hook, lpf_pthread_finalize, lpf_pthread_initialize, lpf_put, lpf_register_global,
    lpf_resize_memory_register, lpf_resize_message_queue, lpf_sync,
};
use proptest::prelude::*;

const PROCESSES: usize = 3;

/// Memory of a process: what puts read, what they write, and what gets write.
const PART: usize = 64;
const SOURCES: usize = 0;
const WINDOW: usize = PART;
const RESULTS: usize = 2 * PART;
const SIZE: usize = 3 * PART;

/// Operation of a process, with offsets in parts.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Put {
        from: usize,
        to: (usize, usize),
        size: usize,
    },
    /// From anywhere but the results.
    Get {
        from: (usize, usize),
        to: usize,
        size: usize,
    },
}

/// Operations of each process.
type Superstep = Vec<Vec<Operation>>;
type Memory = Vec<u8>;

fn operation() -> impl Strategy<Value = Operation> {
    let size = prop_oneof![0usize..20, Just(8)];
    (any::<bool>(), 0..PROCESSES, 0..PART - 20, 0..PART - 20, size).prop_map(
        |(is_put, process, near, far, size)| match is_put {
            true => Operation::Put { from: near, to: (process, far), size },
            false => Operation::Get { from: (process, 2 * far), to: near, size },
        },
    )
}

fn supersteps() -> impl Strategy<Value = Vec<Superstep>> {
    let operations = prop::collection::vec(operation(), 0..4);
    prop::collection::vec(prop::collection::vec(operations, PROCESSES), 1..6)
}

/// Returns the memory that a process begins with.
fn begin(process: usize) -> Memory {
    (0..SIZE).map(|byte| (byte * 7 + process * 89) as u8).collect()
}

/// Memories of a process after each superstep.
struct Recorded<'p> {
    program: &'p [Superstep],
    memories: Vec<Memory>,
}

fn ok(code: Code) {
    assert_eq!(code, 0);
}

extern "C" fn spmd(ctx: Handle, pid: Pid, _processes: Pid, args: Args) {
    // SAFETY: The thread of this process has passed its own record, which it does not use meanwhile.
    let recorded = unsafe { &mut *args.output.cast::<Recorded<'_>>() };
    let mut memory = begin(pid as usize);
    let pointer: *mut c_void = memory.as_mut_ptr().cast();
    let mut slot = 0;
    // SAFETY: The context is that of this process, and its memory lives until it returns.
    unsafe {
        ok(lpf_resize_memory_register(ctx, 1));
        ok(lpf_resize_message_queue(ctx, 100));
        ok(lpf_sync(ctx, LPF_SYNC_DEFAULT));
        ok(lpf_register_global(ctx, pointer, SIZE, &raw mut slot));
        ok(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    }
    for superstep in recorded.program {
        for operation in &superstep[pid as usize] {
            // SAFETY: As before.
            ok(unsafe {
                match *operation {
                    Operation::Put { from, to: (process, to), size } => lpf_put(
                        ctx,
                        slot,
                        SOURCES + from,
                        process as Pid,
                        slot,
                        WINDOW + to,
                        size,
                        LPF_MSG_DEFAULT,
                    ),
                    Operation::Get { from: (process, from), to, size } => lpf_get(
                        ctx,
                        process as Pid,
                        slot,
                        from,
                        slot,
                        RESULTS + to,
                        size,
                        LPF_MSG_DEFAULT,
                    ),
                }
            });
        }
        // SAFETY: As before.
        ok(unsafe { lpf_sync(ctx, LPF_SYNC_DEFAULT) });
        // SAFETY: The sync has ended, and nobody reaches the memory before the next.
        recorded
            .memories
            .push(unsafe { std::slice::from_raw_parts(pointer.cast(), SIZE) }.to_vec());
        // SAFETY: As before. Nobody is ahead while a process copies its memory.
        ok(unsafe { lpf_sync(ctx, LPF_SYNC_DEFAULT) });
    }
}

/// Runs a program on threads, and returns the memories of each process after each superstep.
fn run(program: &[Superstep]) -> Vec<Vec<Memory>> {
    let process = |pid: usize| {
        let mut recorded = Recorded { program, memories: Vec::new() };
        let mut init: Init = std::ptr::null_mut();
        let output = (&raw mut recorded).cast();
        let args = Args { output, output_size: size_of::<Recorded<'_>>(), ..LPF_NO_ARGS.get() };
        // SAFETY: Pointers are to values of this function.
        unsafe {
            ok(lpf_pthread_initialize(pid as Pid, PROCESSES as Pid, &raw mut init));
            ok(lpf_hook(init, Some(spmd), args));
            ok(lpf_pthread_finalize(init));
        }
        recorded.memories
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..PROCESSES).map(|pid| scope.spawn(move || process(pid))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a process ends")).collect()
    })
}

/// Returns all orders of a list.
fn orders<T: Clone>(list: &[T]) -> Vec<Vec<T>> {
    if list.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in list.iter().enumerate() {
        let mut others = list.to_vec();
        others.remove(index);
        for mut order in orders(&others) {
            order.push(first.clone());
            all.push(order);
        }
    }
    all
}

/// Writes pieces of memory one after the other.
fn written(memory: &[u8], pieces: &[(usize, Memory)]) -> Memory {
    let mut memory = memory.to_vec();
    for (at, bytes) in pieces {
        memory[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    memory
}

/// Checks that a part of memory is what some order of the pieces leaves.
fn check_part(
    before: &[u8],
    pieces: &[(usize, Memory)],
    after: &[u8],
) -> Result<(), TestCaseError> {
    // More than 7 pieces have too many orders: then each byte is that of some piece.
    let is_right = match pieces.len() <= 7 {
        true => orders(pieces).iter().any(|order| written(before, order) == after),
        false => (0..after.len()).all(|byte| {
            let mut covers =
                pieces.iter().filter(|(at, bytes)| (*at..at + bytes.len()).contains(&byte));
            match covers.clone().next() {
                Some(_) => covers.any(|(at, bytes)| bytes[byte - at] == after[byte]),
                None => before[byte] == after[byte],
            }
        }),
    };
    prop_assert!(is_right, "{pieces:?}\nbefore {before:?}\nafter  {after:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn programs_leave_what_some_order_of_their_operations_leaves(program in supersteps()) {
        let memories = run(&program);
        let mut before: Vec<Memory> = (0..PROCESSES).map(begin).collect();
        for (number, superstep) in program.iter().enumerate() {
            let mut put = vec![Vec::new(); PROCESSES];
            let mut got = vec![Vec::new(); PROCESSES];
            for (process, operations) in superstep.iter().enumerate() {
                for operation in operations {
                    match *operation {
                        Operation::Put { from, to: (target, to), size } => {
                            let bytes = before[process][SOURCES + from..][..size].to_vec();
                            put[target].push((to, bytes));
                        }
                        Operation::Get { from: (source, from), to, size } => {
                            got[process].push((to, before[source][from..][..size].to_vec()));
                        }
                    }
                }
            }
            for process in 0..PROCESSES {
                let (before, after) = (&before[process], &memories[process][number]);
                prop_assert_eq!(&before[..PART], &after[..PART]);
                check_part(&before[WINDOW..RESULTS], &put[process], &after[WINDOW..RESULTS])?;
                check_part(&before[RESULTS..], &got[process], &after[RESULTS..])?;
            }
            before = memories.iter().map(|memories| memories[number].clone()).collect();
        }
    }
}
