use std::rc::Rc;

use talpf_runtime::{Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let shared = Rc::new(1);
    runtime.task("captures").spawn(move || drop(shared)).unwrap();
}
