//! Sockets and timers of tokio, awaited inside tasks.
//!
//! Workers and `Runtime::block_on` have entered a tokio runtime of their own, so its futures work in
//! every task. A server and some clients exchange lines over localhost on one worker: a task that
//! waits for a socket or a timer is suspended, keeps its regions, and leaves the worker to others.
//! Run it with `cargo run -p talpf-runtime --example tokio_io`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use talpf_runtime::{Array, Config, InOut, Runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const CLIENTS: usize = 3;
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new(Config { workers: 1, ..Config::default() })?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))??;
    let address = listener.local_addr()?;

    let server = runtime.task("server").run_async(move || timeout(LIMIT, serve(listener)))?;
    let lines = vec![b"lines".to_vec(); CLIENTS];
    let lines = Array::new(&runtime, lines, 1)?;
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let task = runtime.task("client").inout(&lines.tile(client));
        clients.push(task.run_async(move |line| ask(address, client, line))?);
    }
    // It depends on the lines, and so on what has come over the sockets.
    let read = runtime.task("read").input(&lines.all()).run(|lines| lines.to_vec())?;
    let lines = runtime.block_on(read)??;

    for client in clients {
        runtime.block_on(client)???;
    }
    runtime.block_on(server)????;
    assert_eq!(lines, vec![b"LINES".to_vec(); CLIENTS]);
    println!("{CLIENTS} clients have got their answers from {address}");
    Ok(())
}

/// Sends every client its line in capitals.
async fn serve(listener: TcpListener) -> io::Result<()> {
    for _ in 0..CLIENTS {
        let (mut stream, _) = listener.accept().await?;
        let mut line = [0; 5];
        stream.read_exact(&mut line).await?;
        stream.write_all(&line.to_ascii_uppercase()).await?;
    }
    Ok(())
}

/// Sends a line after a while and overwrites it with the answer.
async fn ask(address: SocketAddr, client: usize, mut line: InOut<Vec<u8>>) -> io::Result<()> {
    sleep(Duration::from_millis(10 * client as u64)).await;
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&line[0]).await?;
    stream.read_exact(&mut line[0]).await?;
    Ok(())
}
