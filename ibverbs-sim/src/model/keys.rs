//! The keys of a link model, and what makes figures of their values.

use std::collections::BTreeMap;

use super::document::{Entries, Entry};
use super::error::LinkModelError;
use super::link_model::{Exception, LinkModel};
use super::quantity::{self, BYTES, COUNT, Frequency, Rate, Span};
use super::route::{Bandwidth, Packets, Route};

/// Keys of a route.
const ROUTE: [&str; 6] =
    ["bandwidth", "gap", "latency", "overhead", "receive_overhead", "send_overhead"];
/// Keys that say which processes an exceptional route is for.
const SIDES: [&str; 2] = ["from", "to"];
/// Keys of a link besides those of its route.
const LINK: [&str; 10] =
    ["buffer", "clock", "first_header", "header", "hop", "mesh", "node", "noise", "packet", "seed"];
/// Name of the table of the route inside a node.
const INSIDE: &str = "inside.";

/// Text of what is expected of the number of a node.
const NODE: &str = "the number of a node, from 0 to 1048575";
/// Text of what is expected of a seed.
const SEED: &str = "a whole number from 0 to 18446744073709551615";
/// Text of what is expected of a mesh.
const MESH: &str = "columns and rows of at most 1024 nodes each, such as 4x4";
/// Text of what is expected of a bandwidth.
const PIECES: &str = "or several for messages from a size on, as in 1GB/s; 4KiB: 10GB/s";

/// Keys by name, each once.
struct Keys<'a> {
    by_name: BTreeMap<&'a str, &'a Entry>,
    clock: Option<Frequency>,
}

/// Makes a link model of `entries`, with figures of `base` where they say nothing.
pub(super) fn build(base: LinkModel, entries: &Entries) -> Result<LinkModel, LinkModelError> {
    let mut keys = Keys::new(&entries.link, None, |key| {
        let inside = key.strip_prefix(INSIDE);
        LINK.contains(&key) || ROUTE.contains(&inside.unwrap_or(key))
    })?;
    keys.clock = keys.read("clock", Frequency::EXPECTED, Frequency::parse)?;
    let mut model = base;
    model.between = keys.route("", model.between)?;
    if keys.has_any(INSIDE) {
        let base = model.inside.take().unwrap_or(Route::FREE);
        model.inside = Some(keys.route(INSIDE, base)?);
    }
    model.packets = keys.packets(model.packets)?;
    set(&mut model.node, keys.read("node", COUNT, quantity::count)?);
    set(&mut model.hop, keys.span("hop")?);
    if let Some(mesh) = keys.read("mesh", MESH, mesh)? {
        model.mesh = Some(mesh);
    }
    let unlimited = |text: &str| match text {
        "unlimited" => Some(None),
        text => quantity::bytes(text).map(Some),
    };
    set(&mut model.buffer, keys.read("buffer", &format!("{BYTES}, or unlimited"), unlimited)?);
    set(&mut model.noise, keys.span("noise")?);
    set(&mut model.seed, keys.read("seed", SEED, |text| text.parse().ok())?);
    keys.needs("seed", model.noise != Span::ZERO, "noise")?;
    keys.needs("hop", model.mesh.is_some(), "mesh")?;
    keys.needs("node", model.node == 1 || model.inside.is_some(), "inside.bandwidth")?;
    let inside = keys.by_name.keys().find(|key| key.starts_with(INSIDE)).copied();
    keys.needs(inside.unwrap_or(INSIDE), model.node > 1, "node, at least 2")?;
    for route in &entries.routes {
        let allowed = |key: &str| ROUTE.contains(&key) || SIDES.contains(&key);
        let keys = Keys::new(route, keys.clock, allowed)?;
        let [from, to] = SIDES.map(|side| keys.read(side, NODE, node));
        let route = keys.route("", model.between.clone())?;
        model.exceptions.push(Exception { from: from?, to: to?, route });
    }
    Ok(model)
}

impl<'a> Keys<'a> {
    fn new(
        entries: &'a [Entry],
        clock: Option<Frequency>,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Self, LinkModelError> {
        let mut by_name: BTreeMap<&str, &Entry> = BTreeMap::new();
        for entry in entries {
            let Entry { key, line, .. } = entry;
            if !is_known(key) {
                let mut known = [&ROUTE[..], &LINK, &SIDES].concat();
                known.retain(|key| is_known(key));
                let mut known = known.join(", ");
                if is_known("inside.gap") {
                    known += ", and those of a route behind inside.";
                }
                return Err(LinkModelError::UnknownKey { line: *line, key: key.clone(), known });
            }
            let name = key.rsplit_once('.').map_or(key.as_str(), |(_, name)| name);
            let table = &key[..key.len() - name.len()];
            let same = |other: &str| by_name.get(format!("{table}{other}").as_str());
            let other = by_name.get(key.as_str()).or_else(|| match name {
                "overhead" => same("send_overhead").or_else(|| same("receive_overhead")),
                "send_overhead" | "receive_overhead" => same("overhead"),
                _ => None,
            });
            if let Some(other) = other {
                let (key, other) = (key.clone(), other.key.clone());
                return Err(LinkModelError::Contradiction { line: *line, key, other });
            }
            by_name.insert(key, entry);
        }
        Ok(Keys { by_name, clock })
    }

    fn has_any(&self, table: &str) -> bool {
        self.by_name.keys().any(|key| key.starts_with(table))
    }

    /// Reads the value of a key by `read`, if the key is given.
    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, LinkModelError> {
        let Some(entry) = self.by_name.get(key) else { return Ok(None) };
        read(&entry.value).map(Some).ok_or_else(|| entry.refuse(expected))
    }

    fn span(&self, key: &str) -> Result<Option<Span>, LinkModelError> {
        self.read(key, Span::EXPECTED, |text| Span::parse(text, self.clock))
    }

    /// Reads the figures of the route whose keys stand behind `table`.
    fn route(&self, table: &str, base: Route) -> Result<Route, LinkModelError> {
        let span = |name: &str| self.span(&format!("{table}{name}"));
        let mut route = base;
        let both = span("overhead")?;
        set(&mut route.send_overhead, span("send_overhead")?.or(both));
        set(&mut route.receive_overhead, span("receive_overhead")?.or(both));
        set(&mut route.latency, span("latency")?);
        set(&mut route.gap, span("gap")?);
        let expected = format!("{}, {PIECES}", Rate::EXPECTED);
        let read = |text: &str| bandwidth(text, self.clock);
        set(&mut route.bandwidth, self.read(&format!("{table}bandwidth"), &expected, read)?);
        Ok(route)
    }

    fn packets(&self, base: Packets) -> Result<Packets, LinkModelError> {
        let mut packets = base;
        set(&mut packets.size, self.read("packet", BYTES, quantity::bytes)?);
        let header = self.read("header", BYTES, quantity::bytes)?;
        set(&mut packets.header, header);
        set(&mut packets.first_header, header);
        set(&mut packets.first_header, self.read("first_header", BYTES, quantity::bytes)?);
        let longest = packets.header.max(packets.first_header);
        self.needs("header", packets.size > 0, "packet")?;
        self.needs("first_header", packets.size > 0, "packet")?;
        let mut entries =
            ["packet", "header", "first_header"].iter().filter_map(|key| self.by_name.get(key));
        match entries.next() {
            Some(entry) if packets.size <= longest => {
                Err(entry.refuse(&format!("packets longer than their headers of {longest}B")))
            }
            _ => Ok(packets),
        }
    }

    /// Fails if `key` is given and `there` is false: the key needs another one.
    fn needs(&self, key: &str, there: bool, needed: &'static str) -> Result<(), LinkModelError> {
        match self.by_name.get(key) {
            Some(Entry { key, line, .. }) if !there => {
                Err(LinkModelError::Missing { line: *line, key: key.clone(), needed })
            }
            _ => Ok(()),
        }
    }
}

fn set<T>(figure: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *figure = given;
    }
}

/// Reads rates: the first for all messages, others for those from a size on.
fn bandwidth(text: &str, clock: Option<Frequency>) -> Option<Bandwidth> {
    let mut pieces: Vec<(u64, Rate)> = Vec::new();
    for (index, piece) in text.split(';').enumerate() {
        let (from, rate) = match piece.split_once(':') {
            Some((from, rate)) => (quantity::bytes(from)?, rate),
            None if index == 0 => (0, piece),
            None => return None,
        };
        if pieces.last().is_some_and(|&(before, _)| from <= before) || (index == 0 && from > 0) {
            return None;
        }
        pieces.push((from, Rate::parse(rate, clock)?));
    }
    Some(Bandwidth { pieces })
}

fn mesh(text: &str) -> Option<(u32, u32)> {
    let (columns, rows) = text.split_once('x')?;
    let side = |text| quantity::count(text).filter(|side| *side <= 1024);
    Some((side(columns)?, side(rows)?))
}

fn node(text: &str) -> Option<u32> {
    text.parse().ok().filter(|node| *node < 1 << 20)
}
