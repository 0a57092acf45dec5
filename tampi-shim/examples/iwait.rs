//! Messages that are bound to the completion of a task.
//!
//! A task starts a send or a receive, gives the request to `iwait` and returns: it is complete, and
//! its regions are free for other tasks, when the message is there. With `iwait_status` a region
//! gets what is known of the message. Run it with `cargo run -p tampi-shim --example iwait`.

use talpf_runtime::Array;
use tampi_shim::{
    ANY_SOURCE, Communicator, Config, Error, Rank, Status, Tag, exec, iwait, iwait_status,
};

const RANKS: u32 = 4;
const ROOT: Rank = Rank(0);
const TAG: Tag = Tag(3);

pub(crate) fn main() -> Result<(), Error> {
    let sums = exec(Config { ranks: RANKS, ..Config::default() }, collect)?;
    let expected: Vec<u64> = (0..RANKS).map(|rank| u64::from(rank * rank)).collect();
    assert_eq!(sums[0], expected);
    println!("the sums of the messages of each rank: {:?}", sums[0]);
    Ok(())
}

/// Sends each rank's number, as often as it says, to the root, which returns a sum for each rank.
async fn collect(world: Communicator) -> Result<Vec<u64>, Error> {
    let (rank, ranks) = (world.rank().0 as usize, world.size() as usize);
    if world.rank() != ROOT {
        let numbers = Array::new(world.group(), vec![0u64; rank], rank)?;
        let fill = world.group().task("fill").output(&numbers.all());
        fill.spawn(move |mut numbers| numbers.fill(rank as u64))?;
        let to = world.clone();
        world.group().task("send").input(&numbers.all()).spawn(move |numbers| {
            iwait(to.isend(numbers, ROOT, TAG)).expect("called in a task");
        })?;
        return Ok(Vec::new());
    }
    let inboxes = Array::new(world.group(), vec![0u64; ranks * ranks], ranks)?;
    let statuses = Array::new(world.group(), vec![Status::default(); ranks], 1)?;
    let sums = Array::new(world.group(), vec![0u64; ranks], ranks)?;
    for message in 1..ranks {
        let (inbox, status) = (inboxes.tile(message), statuses.tile(message));
        let from = world.clone();
        world.group().task("receive").output(&inbox).output(&status).spawn(
            move |inbox, status| {
                let request = from.irecv(inbox, ANY_SOURCE, TAG);
                iwait_status(request, status).expect("called in a task");
            },
        )?;
        // It runs when the message is there, and learns from the status whose it is.
        let add = world.group().task("add").input(&inbox).input(&status).commutative(&sums.all());
        add.spawn(|inbox, status, mut sums| {
            let length = status[0].elements::<u64>().expect("numbers were sent") as usize;
            sums[status[0].source.0 as usize] = inbox[..length].iter().sum();
        })?;
    }
    Ok(world.group().task("read").input(&sums.all()).run(|sums| sums.to_vec())?.await?)
}
