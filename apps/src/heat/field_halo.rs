//! Edges and halos of a field, as pieces of an exchange.

use talpf::{Decomposition, Face, Halo};
use talpf_runtime::{Ix2, Matrix};

use crate::Error;
use crate::run::{Piece, RankContext};

/// Field whose edges are sent and whose halos are received, face by face.
pub(crate) struct FieldHalo {
    field: Matrix<f64>,
    /// Registration of the field, if the variant is one-sided.
    halo: Option<Halo<f64>>,
}

impl FieldHalo {
    /// Registers `field`, if the variant is one-sided. Collective.
    pub(crate) async fn new(
        ctx: &RankContext,
        parts: &Decomposition,
        field: &Matrix<f64>,
    ) -> Result<Self, Error> {
        let halo = match ctx {
            RankContext::OneSided(ctx, _) => Some(Halo::new(ctx, parts, field).await?),
            RankContext::TwoSided(_) => None,
        };
        Ok(Self { field: field.clone(), halo })
    }

    /// Returns the edge of a face, which this rank sends.
    pub(crate) fn edge(&self, face: &Face, tag: usize) -> Piece<'_, '_, Ix2> {
        let remote = self.halo.as_ref().map(|halo| halo.neighbours_halo(face));
        Piece { region: face.edge_of(&self.field), peer: face.neighbour.0 as usize, tag, remote }
    }

    /// Returns the halo of a face, which this rank receives.
    pub(crate) fn halo(&self, face: &Face, tag: usize) -> Piece<'_, '_, Ix2> {
        let remote = self.halo.as_ref().map(|halo| halo.neighbours_edge(face));
        Piece { region: face.halo_of(&self.field), peer: face.neighbour.0 as usize, tag, remote }
    }
}
