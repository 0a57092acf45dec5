//! Model of tickets: the windows of an owner and the requests of a source, with all orders of what both do
//! and of the messages between them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use talpf_runtime::Rect;

use super::window_requests::{Wants, WindowRequest, WindowRequests};
use crate::held_guard::{HeldGuard, OtherGuard};
use crate::numbers::{LaneNumber, Rank, Round, TicketNumber};
use crate::window::{
    Area, Claim, Freed, Kind, Landing, Outcome, Parked, Post, Ticket, TicketEnd, Unended,
    WindowTable,
};

const LANE: LaneNumber = LaneNumber(0);
const SOURCE: Rank = Rank(1);
/// A rank whose puts need no messages.
const OTHER: Rank = Rank(2);
const CREDITS: usize = 4;

/// The first and the last element of a put.
type Elements = (u64, u64);

/// Puts of each round: those of the source, and that of the other rank.
type Program = Vec<(Vec<Elements>, Option<Elements>)>;

/// A message.
#[derive(Debug)]
enum Message {
    Request(u32, WindowRequest, Claim),
    Grant(u32),
    Ticket(Ticket),
    Recall(TicketNumber),
    Return(TicketNumber, TicketEnd),
    /// A put has landed: by a grant or by a ticket.
    Data(Option<TicketNumber>, Claim),
}

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<VecDeque<Message>>>);

impl Queue {
    fn send(&self, message: Message) {
        self.0.lock().unwrap().push_back(message);
    }

    fn take(&self) -> Option<Message> {
        self.0.lock().unwrap().pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

/// A put of the source.
struct Put {
    data: Queue,
    claim: Claim,
    ticket: Option<TicketNumber>,
}

impl Landing for Put {
    fn post(&mut self) -> Post {
        self.data.send(Message::Data(self.ticket, self.claim));
        Post::All
    }

    fn post_by_ticket(&mut self, ticket: TicketNumber) -> Post {
        self.ticket = Some(ticket);
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
        self.ticket = Some(ticket);
    }

    fn refuse(self: Box<Self>) {
        panic!("{:?} has a window", self.claim);
    }
}

/// The answer of the owner to a request, or a put of the other rank.
struct Answer {
    to_source: Queue,
    number: Option<u32>,
    /// Operations that were granted and have not landed.
    granted: Arc<Mutex<u32>>,
    landed: Arc<Mutex<u32>>,
}

impl Answer {
    fn give(&self) -> Post {
        match self.number {
            Some(number) => {
                *self.granted.lock().unwrap() += 1;
                self.to_source.send(Message::Grant(number));
            }
            None => *self.landed.lock().unwrap() += 1,
        }
        Post::All
    }
}

impl Landing for Answer {
    fn is_request(&self) -> bool {
        self.number.is_some()
    }

    fn post(&mut self) -> Post {
        self.give()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for Answer {
    fn post(&mut self) -> Post {
        self.give()
    }

    fn refuse(self: Box<Self>) {
        panic!("every operation has a window");
    }
}

struct Guard;

impl OtherGuard for Guard {
    fn poison(self: Box<Self>, reason: &str) {
        panic!("{reason}");
    }
}

struct Model {
    program: Program,
    table: WindowTable,
    requests: WindowRequests,
    to_source: Queue,
    to_owner: Queue,
    /// Data of puts, which messages may overtake.
    data: Queue,
    granted: Arc<Mutex<u32>>,
    landed: Arc<Mutex<u32>>,
    /// Round in which the owner is, and whether its window is open.
    round: (usize, bool),
    /// Puts of the source that were issued, by their round and number.
    issued: (usize, usize),
    /// `true` once the other rank has put in the round.
    other_has_put: bool,
    /// Tickets that were used.
    used: u32,
}

/// A step of one of the ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Issue,
    TakeAtSource,
    LosePatience,
    Open,
    TakeAtOwner,
    TakeData,
    PutOfOther,
}

/// Steps in the order in which they come first before the rounds that are explored.
const WARM_UP: [Action; 6] = [
    Action::Open,
    Action::TakeAtSource,
    Action::TakeAtOwner,
    Action::TakeData,
    Action::PutOfOther,
    Action::Issue,
];

impl Model {
    fn new(program: Program) -> Self {
        Model {
            program,
            table: WindowTable::new(3, CREDITS),
            requests: WindowRequests::default(),
            to_source: Queue::default(),
            to_owner: Queue::default(),
            data: Queue::default(),
            granted: Arc::default(),
            landed: Arc::default(),
            round: (0, false),
            issued: (0, 0),
            other_has_put: false,
            used: 0,
        }
    }

    fn actions(&self) -> Vec<Action> {
        let (round, is_open) = self.round;
        // The source may be a round ahead.
        let issues = self.issued.0 < self.program.len() && self.issued.0 <= round + 1;
        let other_puts = || self.program[round].1.is_some() && !self.other_has_put;
        let is_over = round == self.program.len();
        [
            (Action::Issue, issues),
            (Action::TakeAtSource, !self.to_source.is_empty()),
            (Action::LosePatience, self.requests.has_patient()),
            (Action::Open, !is_over && !is_open),
            (Action::TakeAtOwner, !self.to_owner.is_empty()),
            (Action::TakeData, !self.data.is_empty()),
            (Action::PutOfOther, !is_over && other_puts()),
        ]
        .into_iter()
        .filter_map(|(action, is_possible)| is_possible.then_some(action))
        .collect()
    }

    fn run(&mut self, action: Action) {
        match action {
            Action::Issue => self.issue(),
            Action::TakeAtSource => self.take_at_source(),
            Action::LosePatience => {
                let ask = |number, request, claim| {
                    self.to_owner.send(Message::Request(number, request, claim));
                };
                self.requests.ask(0, ask);
                self.requests.ask(u64::MAX - 1, ask);
            }
            Action::Open => self.open(),
            Action::TakeAtOwner => self.take_at_owner(self.to_owner.take()),
            Action::TakeData => self.take_at_owner(self.data.take()),
            Action::PutOfOther => {
                self.other_has_put = true;
                let claim = claim(OTHER, self.program[self.round.0].1.unwrap());
                self.land(None, Round(self.round.0 as u64), claim);
            }
        }
        if !matches!(action, Action::Issue | Action::TakeAtSource | Action::LosePatience) {
            self.settle_and_end();
        }
    }

    fn issue(&mut self) {
        let (round, nth) = self.issued;
        let puts = &self.program[round].0;
        self.issued = if nth + 1 < puts.len() { (round, nth + 1) } else { (round + 1, 0) };
        let Some(&elements) = puts.get(nth) else { return };
        let claim = claim(SOURCE, elements);
        let request = WindowRequest { target: Rank(0), lane: LANE, round: Round(round as u64) };
        let put = Put { data: self.data.clone(), claim, ticket: None };
        let send = |number| self.to_owner.send(Message::Request(number, request, claim));
        let give_back = |number| self.to_owner.send(Message::Return(number, TicketEnd::Unused));
        let wants = Wants::Window(request, claim);
        let outcome = self.requests.add(wants, put, CREDITS, send, give_back);
        assert!(matches!(outcome, Outcome::Posted(_) | Outcome::Parked));
    }

    fn take_at_source(&mut self) {
        match self.to_source.take().unwrap() {
            Message::Grant(number) => self.requests.grant(number, None),
            Message::Ticket(ticket) if self.requests.take_ticket(ticket) => {}
            Message::Ticket(ticket) => {
                self.to_owner.send(Message::Return(ticket.number, TicketEnd::Late));
            }
            Message::Recall(number) if self.requests.give_back(number) => {
                self.to_owner.send(Message::Return(number, TicketEnd::Unused));
            }
            Message::Recall(_) => {}
            other => panic!("{other:?} is for the owner"),
        }
    }

    fn open(&mut self) {
        let rect = Rect { row: 0, row_end: 1, col: 0, col_end: 100 };
        let area = Area { slot: 0, rect, cols: 100, kind: Kind::Write };
        let guard = HeldGuard::Other(Box::new(Guard));
        let round = Round(self.round.0 as u64);
        let send = |ticket| {
            self.to_source.send(Message::Ticket(ticket));
            true
        };
        let has_landed = self.has_landed();
        let (freed, _) =
            self.table.open((LANE, round), [((0, area), guard)], true, (&has_landed, &send));
        self.run_deferred(freed);
        self.round.1 = true;
    }

    fn has_landed(&self) -> impl Fn(Rank) -> bool + use<> {
        let granted = Arc::clone(&self.granted);
        move |source| source != SOURCE || *granted.lock().unwrap() == 0
    }

    fn run_deferred(&self, freed: Freed) {
        let freed = self.table.post_admitted(freed, &self.has_landed());
        for (source, number) in freed.recalled() {
            assert_eq!(*source, SOURCE);
            self.to_source.send(Message::Recall(*number));
        }
    }

    fn land(&self, number: Option<u32>, round: Round, claim: Claim) {
        let (granted, landed) = (Arc::clone(&self.granted), Arc::clone(&self.landed));
        let answer = Answer { to_source: self.to_source.clone(), number, granted, landed };
        let has_landed = self.has_landed();
        let (outcome, freed) = self.table.land(LANE, round, claim, true, answer, &has_landed);
        assert!(matches!(outcome, Outcome::Posted(_) | Outcome::Parked));
        self.run_deferred(freed);
    }

    fn take_at_owner(&mut self, message: Option<Message>) {
        match message.unwrap() {
            Message::Request(number, request, claim) => {
                self.land(Some(number), request.round, claim);
            }
            Message::Return(number, end) => {
                assert!(self.table.end_ticket(number, SOURCE, end).is_some());
            }
            Message::Data(ticket, claim) => {
                assert!(self.round.1, "{claim:?} lands in a window that is open");
                match ticket {
                    Some(number) => {
                        self.used += 1;
                        let of = self.table.end_ticket(number, SOURCE, TicketEnd::Used);
                        assert_eq!(of, Some((LANE, Round(self.round.0 as u64))));
                    }
                    None => *self.granted.lock().unwrap() -= 1,
                }
                *self.landed.lock().unwrap() += 1;
            }
            other => panic!("{other:?} is for the source"),
        }
    }

    /// Does what a pass of the owner's engine does.
    fn settle_and_end(&mut self) {
        while self.table.has_delayed() {
            let freed = self.table.settle(&self.has_landed());
            let has_progress = freed.has_progress();
            self.run_deferred(freed);
            if !has_progress {
                break;
            }
        }
        let Some((puts, of_other)) = self.program.get(self.round.0) else { return };
        let expected = puts.len() as u32 + u32::from(of_other.is_some());
        if !self.round.1 || *self.landed.lock().unwrap() < expected {
            return;
        }
        let (round, mut freed) = (Round(self.round.0 as u64), Freed::default());
        let ended = self.table.end(LANE, round, &self.has_landed(), &mut freed);
        self.run_deferred(freed);
        match ended {
            Ok(ended) => {
                self.run_deferred(ended.release());
                self.round = (self.round.0 + 1, false);
                self.other_has_put = false;
                *self.landed.lock().unwrap() = 0;
            }
            Err(reason) => assert_eq!(reason, Unended::Tickets),
        }
    }
}

fn claim(source: Rank, (index, last): Elements) -> Claim {
    let (end, kind) = (last + 1, Kind::Write);
    Claim { source, slot: 0, index, end, rows: 1, stride: 0, kind, raw: false }
}

/// Runs a program in every order from `explored` rounds before its end on. Returns the number of orders, and the
/// largest number of tickets that were used.
fn explore(program: &Program, explored: usize) -> (u32, u32) {
    let (mut path, mut orders, mut used) = (Vec::<(usize, usize)>::new(), 0, 0);
    loop {
        let (mut model, mut depth) = (Model::new(program.clone()), 0);
        loop {
            let actions = model.actions();
            if actions.is_empty() {
                break;
            }
            let is_explored = model.round.0 + explored >= program.len();
            let chosen = if is_explored {
                if path.len() == depth {
                    path.push((0, actions.len()));
                }
                depth += 1;
                path[depth - 1].0
            } else {
                // Windows open before the puts come, which learn to wait for that.
                let is_first = |first: &Action| actions.contains(first);
                let first = WARM_UP.into_iter().find(is_first);
                actions.iter().position(|action| Some(*action) == first).unwrap_or(0)
            };
            model.run(actions[chosen]);
        }
        assert_eq!(model.round, (program.len(), false), "stuck after {path:?}");
        (orders, used) = (orders + 1, used.max(model.used));
        while path.last().is_some_and(|(chosen, count)| chosen + 1 == *count) {
            path.pop();
        }
        match path.last_mut() {
            Some((chosen, _)) => *chosen += 1,
            None => return (orders, used),
        }
    }
}

fn rounds(puts: &[&[Elements]]) -> Program {
    puts.iter().map(|puts| (puts.to_vec(), None)).collect()
}

#[test]
fn a_put_of_every_round_gets_tickets_and_lands_in_every_order() {
    let (orders, used) = explore(&rounds(&[&[(0, 9)][..]; 5]), 2);
    assert!(orders > 100, "{orders}");
    assert!(used >= 3, "{used} of 5 by ticket");
}

#[test]
fn two_puts_of_every_round_land_in_every_order() {
    let (_, used) = explore(&rounds(&[&[(0, 9), (10, 19)][..]; 4]), 1);
    assert!(used >= 4, "{used} of 8 by ticket");
}

#[test]
fn a_ticket_that_is_not_used_comes_back_and_its_round_ends() {
    explore(&rounds(&[&[(0, 9)], &[(0, 9)], &[(0, 9)], &[]]), 1);
    explore(&rounds(&[&[(0, 9)], &[(0, 9)], &[], &[(0, 9)]]), 2);
}

#[test]
fn puts_to_other_elements_than_those_of_a_ticket_land() {
    let before = [&[(0, 9)][..]; 3];
    for puts in [[(0, 4)], [(5, 14)], [(20, 29)], [(0, 19)]] {
        let program = [&before[..], &[&puts[..]]].concat();
        explore(&rounds(&program), 1);
    }
    // More than a ticket allows, and the same elements twice.
    let program = [&before[..], &[&[(0, 4), (5, 9)][..]]].concat();
    explore(&rounds(&program), 1);
    let program = [&before[..], &[&[(0, 9), (0, 9)][..]]].concat();
    explore(&rounds(&program), 1);
}

#[test]
fn a_put_of_another_rank_to_the_elements_of_a_ticket_lands() {
    let mut program = rounds(&[&[(0, 9)][..]; 4]);
    program[3].1 = Some((5, 7));
    explore(&program, 1);
    program[3].0.clear();
    explore(&program, 1);
}
