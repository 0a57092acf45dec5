//! Particles in blocks.

use crate::run::Outcome;
use crate::{Error, Matrix};

/// Particle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Particle {
    /// Position.
    pub place: [f64; 3],
    /// Velocity.
    pub velocity: [f64; 3],
    /// Mass.
    pub mass: f64,
}

/// Particles in blocks of one size, in the layout of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Particles {
    len: usize,
    block: usize,
    /// Positions and masses, `blocks x 4 block`.
    bodies: Vec<f64>,
    /// Velocities, `blocks x 3 block`.
    velocities: Vec<f64>,
}

/// Number of pixels of a picture's side.
const PIXELS: usize = 512;

impl Particles {
    /// Arranges `particles` in blocks of `block`.
    pub fn new(particles: &[Particle], block: usize) -> Self {
        let (len, blocks) = (particles.len(), particles.len().div_ceil(block));
        let mut bodies = vec![0.0; blocks * 4 * block];
        let mut velocities = vec![0.0; blocks * 3 * block];
        for (index, particle) in particles.iter().enumerate() {
            let (body, velocity) = (
                index / block * 4 * block + index % block,
                index / block * 3 * block + index % block,
            );
            for axis in 0..3 {
                bodies[body + axis * block] = particle.place[axis];
                velocities[velocity + axis * block] = particle.velocity[axis];
            }
            bodies[body + 3 * block] = particle.mass;
        }
        Self { len, block, bodies, velocities }
    }

    /// Generates `len` particles in a ball of radius 1 and mass 1 that rotates without moving. The
    /// same `seed` gives the same particles.
    pub fn generate(len: usize, block: usize, seed: u64) -> Self {
        let mut state = seed;
        let mut random = || uniform(&mut state);
        let mut particles: Vec<Particle> = Vec::with_capacity(len);
        while particles.len() < len {
            let place = [random(), random(), random()];
            if place.iter().map(|x| x * x).sum::<f64>() <= 1.0 {
                let shake = [random(), random(), random()].map(|x| 0.1 * x);
                let velocity = [shake[0] - 0.5 * place[1], shake[1] + 0.5 * place[0], shake[2]];
                particles.push(Particle { place, velocity, mass: 1.0 / len as f64 });
            }
        }
        for axis in 0..3 {
            let mean = particles.iter().map(|p| p.velocity[axis]).sum::<f64>() / len as f64;
            particles.iter_mut().for_each(|particle| particle.velocity[axis] -= mean);
        }
        Self::new(&particles, block)
    }

    /// Returns the number of particles.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no particles.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of particles per block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.len.div_ceil(self.block)
    }

    /// Returns particle number `index`.
    pub fn get(&self, index: usize) -> Particle {
        let (block, place) = (index / self.block, index % self.block);
        let body = |part: usize| self.bodies[(4 * block + part) * self.block + place];
        let velocity = |axis: usize| self.velocities[(3 * block + axis) * self.block + place];
        Particle {
            place: std::array::from_fn(body),
            velocity: std::array::from_fn(velocity),
            mass: body(3),
        }
    }

    /// Iterates over all particles.
    pub fn iter(&self) -> impl Iterator<Item = Particle> + '_ {
        (0..self.len).map(|index| self.get(index))
    }

    /// Returns positions and masses, block by block.
    pub fn bodies(&self) -> &[f64] {
        &self.bodies
    }

    /// Returns velocities, block by block.
    pub fn velocities(&self) -> &[f64] {
        &self.velocities
    }

    /// Returns the same particles with other positions and velocities, given for all blocks in
    /// order.
    pub(super) fn moved(&self, bodies: Vec<f64>, velocities: Vec<f64>) -> Self {
        Self { bodies, velocities, ..*self }
    }
}

/// Returns a random number from -1 to 1 (splitmix64).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

impl Outcome for Particles {
    fn checksum(&self) -> f64 {
        self.iter().map(|particle| particle.place.iter().sum::<f64>()).sum()
    }

    fn hash(&self) -> u64 {
        let numbers = self.iter().flat_map(|particle| [particle.place, particle.velocity]);
        numbers.flatten().fold(0xcbf2_9ce4_8422_2325, |hash, number| {
            (hash ^ number.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    fn difference(&self, expected: &Self) -> Option<(String, f64, f64)> {
        self.iter().zip(expected.iter()).enumerate().find_map(|(index, (found, expected))| {
            let pairs = [
                ("place", found.place, expected.place),
                ("velocity", found.velocity, expected.velocity),
            ];
            pairs.into_iter().find_map(|(name, found, expected)| {
                let axis =
                    (0..3).find(|&axis| found[axis].to_bits() != expected[axis].to_bits())?;
                let place = format!("particle {index}, {name}, axis {axis}");
                Some((place, found[axis], expected[axis]))
            })
        })
    }

    /// Counts the particles under each pixel, seen along `z`, as a logarithm.
    fn picture(&self) -> Matrix {
        let reach = self.iter().flat_map(|p| [p.place[0].abs(), p.place[1].abs()]);
        let reach = reach.fold(f64::MIN_POSITIVE, f64::max);
        let pixel = |x: f64| {
            let place = (x / reach + 1.0) / 2.0 * PIXELS as f64;
            (place as usize).min(PIXELS - 1)
        };
        let mut counts = Matrix::zeros(PIXELS, PIXELS);
        for particle in self.iter() {
            counts.row_mut(pixel(-particle.place[1]))[pixel(particle.place[0])] += 1.0;
        }
        for row in 0..PIXELS {
            counts.row_mut(row).iter_mut().for_each(|count| *count = count.ln_1p());
        }
        counts
    }
}

impl Particles {
    /// Limits of the number of particles, and of particles per block.
    pub const COUNTS: std::ops::RangeInclusive<usize> = 1..=1 << 20;

    /// Checks a number of particles and the size of a block.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn check(len: usize, block: usize) -> Result<(), Error> {
        Error::check_range("particles", len, Self::COUNTS)?;
        Error::check_range("block", block, Self::COUNTS)?;
        Ok(())
    }
}
