use talpf_runtime::{Array, Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    runtime.task("lender").weak_inout(&array.all()).spawn(|all| println!("{}", all[0])).unwrap();
}
