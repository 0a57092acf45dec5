use talpf_runtime::{Config, Runtime};

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let mut local = 1;
    runtime.task("borrows").spawn(|| local = 2).unwrap();
    println!("{local}");
}
