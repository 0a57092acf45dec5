use std::cell::Cell;

use talpf_runtime::{Array, Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let _array = Array::new(&runtime, vec![Cell::new(1)], 1);
}
