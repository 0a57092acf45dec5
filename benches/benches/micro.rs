//! `cargo bench -p talpf-benches`: the same measurements as `talpf-bench micro`.

fn main() -> Result<(), talpf_benches::Error> {
    // `cargo bench -p talpf-benches -- sync.` measures what begins with `sync.`; cargo adds
    // `--bench`.
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    talpf_benches::micro::run(&only.unwrap_or_default()).map(|_| ())
}
