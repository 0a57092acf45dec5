//! Messages of any length from any rank, received by several tasks at the same time.
//!
//! A matched probe takes a message from the queue and says how long it is, so that a buffer of the
//! right length can be made for it. No other task can receive that message in between, as it could
//! after an ordinary probe. Run it with `cargo run -p tampi-shim --example matched_probe`.

use tampi_shim::{ANY_SOURCE, Communicator, Config, Error, Rank, Tag, exec};

const RANKS: u32 = 4;
const MESSAGES: u32 = 12;
const ROOT: Rank = Rank(0);
const TAG: Tag = Tag(0);

pub(crate) fn main() -> Result<(), Error> {
    let texts = exec(Config { ranks: RANKS, ..Config::default() }, collect)?.remove(0);
    let expected: Vec<_> =
        (1..RANKS).flat_map(|rank| (0..MESSAGES).map(move |n| text(rank, n))).collect();
    assert_eq!(texts, expected);
    println!("{} messages received, the last one: {}", texts.len(), texts[texts.len() - 1]);
    Ok(())
}

/// A message, which is the longer the later it is sent.
fn text(rank: u32, number: u32) -> String {
    format!("{rank}: {}", "la ".repeat(number as usize))
}

/// Sends texts to the root, which returns them in order.
async fn collect(world: Communicator) -> Result<Vec<String>, Error> {
    if world.rank() != ROOT {
        for number in 0..MESSAGES {
            world.send(text(world.rank().0, number).into_bytes(), ROOT, TAG).await?;
        }
        return Ok(Vec::new());
    }
    let mut tasks = Vec::new();
    for _ in 0..MESSAGES * (world.size() - 1) {
        let from = world.clone();
        tasks.push(world.group().task("receive").run_async(move || receive(from))?);
    }
    let mut texts = Vec::new();
    for task in tasks {
        texts.push(task.await??);
    }
    // The tasks have taken the messages in any order.
    texts.sort_unstable();
    Ok(texts)
}

/// Receives one message of any rank.
async fn receive(world: Communicator) -> Result<String, Error> {
    let message = world.mprobe(ANY_SOURCE, TAG).await?;
    let buffer = vec![0u8; message.status().bytes as usize];
    let (bytes, _) = message.recv(buffer).await?;
    Ok(String::from_utf8(bytes).expect("a text was sent"))
}
