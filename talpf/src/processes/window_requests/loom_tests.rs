//! Loom models of the requests of a source and its tickets: the thread of a put, and that of the messages.

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;
use crate::window::Kind;

/// Tickets by which puts were posted, if by any.
type Posts = Arc<Mutex<Vec<Option<TicketNumber>>>>;

struct Put(Posts, Option<TicketNumber>);

impl Landing for Put {
    fn post(&mut self) -> Post {
        self.0.lock().unwrap().push(self.1);
        Post::All
    }

    fn post_by_ticket(&mut self, ticket: TicketNumber) -> Post {
        self.1 = Some(ticket);
        Landing::post(self)
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for Put {
    fn post(&mut self) -> Post {
        Landing::post(self)
    }

    fn use_ticket(&mut self, ticket: TicketNumber) {
        self.1 = Some(ticket);
    }

    fn refuse(self: Box<Self>) {
        panic!("the run has not failed");
    }
}

fn request() -> WindowRequest {
    WindowRequest { target: Rank(0), lane: LaneNumber(0), round: Round(1) }
}

fn claim() -> Claim {
    let (source, kind) = (Rank(1), Kind::Write);
    Claim { source, slot: 0, index: 0, end: 8, rows: 1, stride: 0, kind, raw: false }
}

fn ticket(number: u32) -> Ticket {
    let WindowRequest { lane, round, .. } = request();
    Ticket { number: TicketNumber(number), lane, round, claim: claim() }
}

/// Issues the put. Returns `true` if it has asked.
fn issue(requests: &WindowRequests, posts: &Posts) -> bool {
    let mut has_asked = false;
    let put = Put(Arc::clone(posts), None);
    let wants = Wants::Window(request(), claim());
    let outcome =
        requests.add(wants, put, 1, |_| has_asked = true, |_| panic!("none is in the way"));
    assert!(matches!(outcome, Outcome::Posted(_) | Outcome::Parked));
    has_asked
}

/// A ticket comes and is recalled while the put is issued.
#[test]
fn loom_a_ticket_is_used_or_goes_back() {
    for is_expected in [false, true] {
        loom::model(move || {
            let (requests, posts) = (Arc::new(WindowRequests::default()), Posts::default());
            if is_expected {
                // An earlier ticket that was used.
                requests.state.lock().tickets.expect(Ticket { round: Round(0), ..ticket(6) });
            }
            let issuer = {
                let (requests, posts) = (Arc::clone(&requests), Arc::clone(&posts));
                thread::spawn(move || issue(&requests, &posts))
            };
            let is_taken = requests.take_ticket(ticket(7));
            let is_back = is_taken && requests.give_back(TicketNumber(7));
            let has_asked = issuer.join().unwrap();
            let posts = posts.lock().unwrap().clone();
            let is_used = posts == [Some(TicketNumber(7))];
            assert!(is_used || posts.is_empty(), "{posts:?}");
            assert_eq!(is_used, is_taken && !is_back, "used, or back");
            // A put that has not asked waits for a ticket, and will.
            assert!(is_used || has_asked || requests.has_patient());
            assert!(!(is_used && has_asked), "it asks for what it has");
        });
    }
}

/// A put loses its patience while its ticket comes.
#[test]
fn loom_a_put_that_waits_for_a_ticket_asks_or_uses_it() {
    loom::model(|| {
        let (requests, posts) = (Arc::new(WindowRequests::default()), Posts::default());
        requests.state.lock().tickets.expect(Ticket { round: Round(0), ..ticket(6) });
        assert!(!issue(&requests, &posts));
        let now_ns = 5;
        requests.ask(now_ns, |_, _, _| panic!("it has just come"));
        let asker = {
            let requests = Arc::clone(&requests);
            thread::spawn(move || {
                let asked = loom::sync::Mutex::new(0);
                requests.ask(now_ns + 2 * PATIENCE_NS, |_, _, _| *asked.lock().unwrap() += 1);
                asked.into_inner().unwrap()
            })
        };
        let is_taken = requests.take_ticket(ticket(7));
        let asked = asker.join().unwrap();
        let used = posts.lock().unwrap().len();
        assert_eq!((used, asked), if is_taken { (1, 0) } else { (0, 1) });
    });
}
