use talpf_runtime::Runtime;
use tampi_shim::{Communicator, Error, Rank, Tag, exec, iwait};

use crate::common::{config, run};

async fn refused(world: Communicator) -> Result<(), Error> {
    let size = world.size();
    let error = world.send(vec![0u8], Rank(size), Tag(0)).await.expect_err("no such rank");
    assert!(
        matches!(error, Error::NoSuchRank { rank, ranks } if (rank, ranks) == (Rank(size), size))
    );
    let error = world.recv(vec![0u8], Rank(size), Tag(0)).await.expect_err("no such rank");
    assert!(matches!(error, Error::NoSuchRank { .. }), "{error}");
    let beyond = Tag(Tag::MAX.0 + 1);
    let error = world.send(vec![0u8], world.rank(), beyond).await.expect_err("no such tag");
    assert!(matches!(error, Error::Limit { what: "tag", .. }), "{error}");
    let receive = world.irecv(vec![0u8], world.rank(), Tag::MAX);
    world.send(vec![1u8], world.rank(), Tag::MAX).await?;
    assert_eq!(receive.await?.0, [1]);
    Ok(())
}

#[test]
fn ranks_and_tags_that_do_not_exist_are_refused() {
    run(config(2, 2), refused).unwrap();
}

#[test]
fn numbers_of_ranks_have_limits() {
    for ranks in [0, 1025] {
        let error = exec(config(ranks, 1), async |_| Ok::<_, Error>(())).expect_err("refused");
        assert!(matches!(error, Error::Limit { what: "number of ranks", .. }), "{error}");
    }
}

#[test]
fn binding_outside_of_a_task_is_refused() {
    let program = async |world: Communicator| Ok(world.irecv(vec![0u8], Rank(0), Tag(0)));
    let request = run(config(1, 1), program).unwrap().remove(0);
    assert!(matches!(iwait(request), Err(Error::Runtime(_))));
}

#[test]
fn exec_in_a_task_is_refused_before_its_program_runs() {
    let runtime = Runtime::new(talpf_runtime::Config { workers: 1, ..Default::default() }).unwrap();
    let program = async |_| -> Result<(), Error> { panic!("it has run") };
    let body = runtime.task("outer").run(move || exec(config(1, 1), program));
    let refused = runtime.block_on(body.unwrap()).unwrap().unwrap().unwrap_err();
    let is_refused = matches!(
        refused,
        Error::Runtime(talpf_runtime::Error::BlockingInTask { call: "exec", .. })
    );
    assert!(is_refused, "{refused}");
    runtime.shut_down().unwrap();
}
