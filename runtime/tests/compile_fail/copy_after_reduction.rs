use talpf_runtime::operator::Sum;
use talpf_runtime::{Array, Config, Reduction, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let body = |mut all: Reduction<u64>| {
        let copy = &mut all[..];
        drop(all);
        copy[0] = 1;
    };
    runtime.task("keeper").reduction(&array.all(), Sum).spawn(body).unwrap();
}
