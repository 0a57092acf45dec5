use talpf_runtime::{Array, Config, Runtime};

type AnyString = for<'a> fn(&'a String);
type StaticString = fn(&'static String);

fn any(_: &String) {}

fn keep(_: &'static String) {}

fn main() {
    let runtime = Runtime::new(Config::default()).unwrap();
    let array: Array<AnyString> = Array::new(&runtime, vec![any as AnyString], 1).unwrap();
    let handle = array.clone();
    let narrower: Array<StaticString> = handle;
    runtime.task("write").output(&narrower.all()).spawn(|mut all| all[0] = keep).unwrap();
    let read = runtime.task("read").input(&array.all()).run(|all| all[0]).unwrap();
    let call: AnyString = runtime.block_on(read).unwrap().unwrap();
    call(&String::from("gone before `keep` has it"));
}
