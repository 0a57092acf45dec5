use talpf_runtime::{Array, Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let body = |mut all: talpf_runtime::InOut<u64>| {
        let moved = all;
        all[0] = 1;
        drop(moved);
    };
    runtime.task("mover").inout(&array.all()).spawn(body).unwrap();
}
