//! Reasons for which ranks of other processes are lost.

use std::collections::BTreeSet;

use super::RemotePeer;
use crate::peer::Peers;

/// Failure of a rank that is stopped, or whose machine is not reached.
const SILENT: &str = "its process has shown no life for the peer timeout";

/// Returns why a peer is lost, with the other processes that have ended: one of them may be why that of
/// the peer has.
#[cold]
pub(super) fn reason(lost: &RemotePeer, peers: &Peers) -> String {
    if lost.is_silent() {
        return SILENT.to_owned();
    }
    let mut reason = "its process has ended".to_owned();
    let has_ended = |peer: &&RemotePeer| peer.has_vanished() && !peer.is_silent();
    let ended = peers.remotes().filter(has_ended).map(|peer| peer.process);
    let others: BTreeSet<_> = ended.filter(|process| *process != lost.process).collect();
    for process in others {
        reason += &format!(", and so has process {process}");
    }
    reason
}
