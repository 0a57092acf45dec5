//! A slow link: relays between processes, which pass on what comes over TCP late, in small pieces, and not at
//! all while the link stalls.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Pace of a link, in each direction of each connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Time that each piece takes.
    pub(crate) delay: Duration,
    /// Most bytes of a piece.
    pub(crate) piece: usize,
}

/// A time in which a link passes nothing on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    /// Bytes that have passed since the stall before, or the start, as it begins.
    pub(crate) after: usize,
    pub(crate) duration: Duration,
}

/// A link, which several relays may be part of. They end with it.
pub(crate) struct Link {
    shared: Arc<Shared>,
    /// Addresses of its relays.
    relays: Mutex<Vec<SocketAddr>>,
}

struct Shared {
    pace: Pace,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    stalls: VecDeque<Stall>,
    /// Bytes that have passed since the last stall.
    passed: usize,
    /// End of the present stall.
    until: Option<Instant>,
    has_ended: bool,
}

impl Link {
    pub(crate) fn new(pace: Pace, stalls: impl IntoIterator<Item = Stall>) -> Self {
        let stalls = stalls.into_iter().collect();
        let state = Mutex::new(State { stalls, passed: 0, until: None, has_ended: false });
        let shared = Arc::new(Shared { pace, state, changed: Condvar::new() });
        Self { shared, relays: Mutex::default() }
    }

    /// Returns the number of stalls that are still to come.
    pub(crate) fn stalls(&self) -> usize {
        self.shared.state.lock().unwrap().stalls.len()
    }

    /// Returns an address that leads over the link to another one of this machine.
    pub(crate) fn to(&self, address: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap();
        self.relays.lock().unwrap().push(own);
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            for here in listener.incoming().map_while(Result::ok) {
                if shared.state.lock().unwrap().has_ended {
                    return;
                }
                // Without the other end this one is closed.
                let Ok(there) = TcpStream::connect(address) else { continue };
                for (from, to) in [(&here, &there), (&there, &here)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || shared.pass_all(from, to));
                }
            }
        });
        own
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().has_ended = true;
        self.shared.changed.notify_all();
        for address in self.relays.get_mut().unwrap().drain(..) {
            // A connection wakes the relay.
            drop(TcpStream::connect(address));
        }
    }
}

impl Shared {
    /// Passes on what comes, until one end closes its connection.
    fn pass_all(&self, mut from: TcpStream, mut to: TcpStream) {
        to.set_nodelay(true).unwrap();
        let mut piece = vec![0; self.pace.piece];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            self.wait(count);
            if to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        self.wait(0);
        let _ = to.shutdown(Shutdown::Write);
    }

    /// Waits until a piece of so many bytes may pass.
    fn wait(&self, bytes: usize) {
        let mut state = self.state.lock().unwrap();
        state.passed += bytes;
        if let Some(stall) = state.stalls.front().copied()
            && state.passed >= stall.after
        {
            state.stalls.pop_front();
            (state.passed, state.until) = (0, Some(Instant::now() + stall.duration));
        }
        while let Some(until) = state.until
            && let Some(left) = until.checked_duration_since(Instant::now())
            && !state.has_ended
        {
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
        let has_ended = state.has_ended;
        drop(state);
        if !has_ended {
            thread::sleep(self.pace.delay);
        }
    }
}
