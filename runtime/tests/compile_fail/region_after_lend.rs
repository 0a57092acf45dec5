use talpf_runtime::{Array, Children, Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let array = Array::new(&runtime, vec![0u64; 4], 4).unwrap();
    let body = |all: talpf_runtime::InOut<u64>| {
        let lent = all.lend();
        let region = lent.region(0..2);
        drop(lent);
        let children = Children::of_current_task().unwrap();
        children.task("child").inout(&region).spawn(|_| ()).unwrap();
    };
    runtime.task("lender").inout(&array.all()).spawn(body).unwrap();
}
