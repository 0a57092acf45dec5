use tampi_shim::{Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, run_well, with_protocols};

/// Every rank sends words to the next, 1 to 100,000 of them.
async fn around(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    let words = |of: u32, count: u32| (0..count).map(|word| word ^ of).collect::<Vec<_>>();
    for count in [1, 2, 5, 10, 11, 16, 50, 100, 500, 1000, 2049, 10_000, 100_000] {
        let (_, received, status) = world
            .sendrecv(
                (words(rank, count), right, Tag(count)),
                (vec![0u32; count as usize], left, Tag(count)),
            )
            .await?;
        assert_eq!(status.elements::<u32>(), Some(u64::from(count)));
        assert!(received == words(left.0, count), "{count} words");
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn words_of_every_size_go_around() {
    for ranks in [1, 2, 5, 32] {
        for workers in [1, 2, 8] {
            run_well(config(ranks, workers), around);
        }
    }
}

#[test]
fn a_message_is_cut_where_the_device_ends() {
    let mut config = with_protocols(config(2, 2), 64, 64);
    config.device.attributes.max_message_size = 1000;
    run_well(config, around);
}

#[test]
#[ignore = "needs 5 GB of memory"]
fn more_than_two_gigabytes() {
    const LENGTH: usize = (1 << 31) + 12_345;
    let program = async |world: Communicator| {
        if world.rank() == Rank(0) {
            let mut bytes = vec![0u8; LENGTH];
            bytes[LENGTH - 1] = 7;
            bytes[1 << 31] = 5;
            world.send(bytes, Rank(1), Tag(0)).await?;
        } else {
            let (bytes, status) = world.recv(vec![0u8; LENGTH], Rank(0), Tag(0)).await?;
            assert_eq!(status.bytes, LENGTH as u64);
            assert_eq!((bytes[1 << 31], bytes[LENGTH - 1]), (5, 7));
        }
        Ok(())
    };
    run_well(config(2, 2), program);
}
