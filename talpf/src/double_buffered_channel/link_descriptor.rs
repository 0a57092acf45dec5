//! Descriptions of links, which ranks exchange as they make a channel.

use bytemuck::Pod;
use ibverbs_sim::{RemoteAddress, RemoteKey};

use super::Link;
use crate::all_gather::Gathered;
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank};
use crate::slot::Slot;

/// The description of one end of a link for the other end.
#[derive(Clone, Copy)]
pub(super) struct LinkDescriptor {
    peer: Rank,
    elements: u64,
    element_bytes: u64,
    buffers: [RemoteAddress; 2],
}

/// Words of a descriptor in a message.
const WORDS: usize = 7;
const WORD: usize = size_of::<u64>();

impl LinkDescriptor {
    /// Returns the descriptor of a link of `rank`, whose buffers are in `slots`.
    pub(super) fn new<T: Pod>(
        rank: Rank,
        link: &Link<'_, T>,
        slots: [&Slot; 2],
    ) -> Result<Self, Error> {
        let [first, second] = &link.buffers;
        let buffers = [
            slots[0].piece_of_row(rank, &first.rect())?,
            slots[1].piece_of_row(rank, &second.rect())?,
        ];
        let (elements, element_bytes) = (first.len() as u64, size_of::<T>() as u64);
        Ok(LinkDescriptor { peer: link.peer, elements, element_bytes, buffers })
    }

    fn words(&self) -> [u64; WORDS] {
        let LinkDescriptor { peer, elements, element_bytes, buffers: [even, odd] } = *self;
        let keys = (even.key.to_u32(), odd.key.to_u32());
        let peer = u64::from(peer.0);
        let (even_key, odd_key) = (u64::from(keys.0), u64::from(keys.1));
        [peer, elements, element_bytes, even.address, even_key, odd.address, odd_key]
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let [peer, elements, element_bytes, even, even_key, odd, odd_key] =
            <[u64; WORDS]>::try_from(words).ok()?;
        let at = |address, key| {
            let key = RemoteKey::from_u32(u32::try_from(key).ok()?);
            Some(RemoteAddress { address, key })
        };
        let buffers = [at(even, even_key)?, at(odd, odd_key)?];
        Some(LinkDescriptor {
            peer: Rank(u32::try_from(peer).ok()?),
            elements,
            element_bytes,
            buffers,
        })
    }
}

/// Encodes the lane of a rank and its descriptors.
pub(super) fn to_bytes(lane: LaneNumber, descriptors: &[LinkDescriptor]) -> Vec<u8> {
    let words = descriptors.iter().flat_map(LinkDescriptor::words);
    std::iter::once(u64::from(lane.0)).chain(words).flat_map(u64::to_le_bytes).collect()
}

/// Decodes the lane of a rank and its descriptors. `None` if the bytes are not such a message.
fn from_bytes(bytes: &[u8]) -> Option<(u64, Vec<LinkDescriptor>)> {
    let (words, rest) = bytes.as_chunks::<WORD>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (lane, words) = words.split_first()?;
    let descriptors = words.chunks(WORDS).map(LinkDescriptor::from_words).collect::<Option<_>>()?;
    rest.is_empty().then_some((*lane, descriptors))
}

/// Finds the other end of every link: the n-th link of one rank to another is the n-th link of
/// that one back. Returns the remote addresses of the buffers there.
pub(super) fn connect(
    here: Rank,
    lane: LaneNumber,
    own: &[LinkDescriptor],
    all: &Gathered,
) -> Result<Vec<[RemoteAddress; 2]>, Error> {
    let differ = |what, rank, here, there| match here == there {
        true => Ok(()),
        false => Err(Error::LinksDiffer { what, rank, here, there }),
    };
    let wrong =
        |rank| Error::BadControlMessage { rank, what: "malformed link descriptors".to_owned() };
    let mut back = Vec::new();
    for (rank, bytes) in all.each() {
        let (its_lane, mut descriptors) = from_bytes(bytes).ok_or_else(|| wrong(rank))?;
        differ("number of the lane", rank, u64::from(lane.0), its_lane)?;
        let links = own.iter().filter(|descriptor| descriptor.peer == rank).count();
        descriptors.retain(|descriptor| descriptor.peer == here);
        differ("number of links to the other rank", rank, links as u64, descriptors.len() as u64)?;
        back.push(descriptors.into_iter());
    }
    let mut ends = Vec::with_capacity(own.len());
    for LinkDescriptor { peer, elements, element_bytes, .. } in own {
        let end = back.get_mut(peer.index()).and_then(Iterator::next);
        let end = end.ok_or_else(|| wrong(*peer))?;
        differ("number of elements of a buffer", *peer, *elements, end.elements)?;
        differ("bytes of an element", *peer, *element_bytes, end.element_bytes)?;
        ends.push(end.buffers);
    }
    Ok(ends)
}
