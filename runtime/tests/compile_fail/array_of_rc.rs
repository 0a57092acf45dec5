use std::rc::Rc;

use talpf_runtime::{Array, Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let _array = Array::new(&runtime, vec![Rc::new(1)], 1);
}
