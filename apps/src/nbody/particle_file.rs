//! Particle file: one particle per line.
//!
//! ```text
//! # x  y  z    vx vy vz   mass
//! 0.0 0.0 0.0   0  0  0    1.0
//! 0.5 0.0 0.0   0  1  0    0.001
//! ```
//!
//! Fields are separated by blanks; a `#` starts a comment; empty lines are ignored.

use std::path::Path;

use super::kernel::MASS;
use super::{Particle, Particles};
use crate::Error;
use crate::text_file::{self, Line};

const LONGEST_FILE: u64 = 1 << 28;
const FARTHEST: f64 = 1e6;
/// Description of a particle in error messages.
const FIELDS: &str = "x, y, z, vx, vy, vz and mass";

/// Reads the particles of a file.
///
/// **Errors**: [`Error::Read`] if the file cannot be read or is longer than 256 MiB, and
/// [`Error::Field`] if a field is invalid; [`Error::MissingField`] without a particle.
pub fn load(path: &Path) -> Result<Vec<Particle>, Error> {
    parse(&path.display().to_string(), &text_file::read(path, LONGEST_FILE)?)
}

/// Parses the particles in `text`; errors name `file`.
///
/// **Errors**: [`Error::Field`], [`Error::MissingField`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Particle>, Error> {
    let most = *Particles::COUNTS.end();
    let mut particles = Vec::new();
    for line in text_file::lines(file, text) {
        if particles.len() == most {
            return Err(line.error("line", line.text, format!("the end after particle {most}")));
        }
        particles.push(particle_of(line)?);
    }
    if particles.is_empty() {
        let end = text_file::end(file, text);
        return Err(end.error("particle", end.text, FIELDS.into()));
    }
    Ok(particles)
}

fn particle_of(line: Line<'_>) -> Result<Particle, Error> {
    let Some([x, y, z, vx, vy, vz, mass]) = line.fields() else {
        return Err(line.error("particle", line.text, FIELDS.into()));
    };
    let near = |field, text| {
        let limit = format!("a number from -{FARTHEST} to {FARTHEST}");
        line.number(field, text, |x| x.abs() <= FARTHEST, limit)
    };
    let limit = format!("a number from {} to {}", MASS.start(), MASS.end());
    Ok(Particle {
        place: [near("x", x)?, near("y", y)?, near("z", z)?],
        velocity: [near("vx", vx)?, near("vy", vy)?, near("vz", vz)?],
        mass: line.number("mass", mass, |mass| MASS.contains(&mass), limit)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_do_not_count() {
        let particles = parse("p", "# x y z\n\n1 2 3 -4 5e-1 6 0.5 # one\n").unwrap();
        let (place, velocity) = ([1.0, 2.0, 3.0], [-4.0, 0.5, 6.0]);
        assert_eq!(particles, [Particle { place, velocity, mass: 0.5 }]);
    }

    #[test]
    fn every_field_says_what_it_is_and_what_it_may_be() {
        for (index, field, bad) in [
            (0, "x", "1e7"),
            (1, "y", "nan"),
            (2, "z", "far"),
            (3, "vx", "-inf"),
            (4, "vy", "-1e7"),
            (5, "vz", "1,0"),
            (6, "mass", "0"),
            (6, "mass", "1e7"),
        ] {
            let mut fields = ["0", "0", "0", "0", "0", "0", "1"];
            fields[index] = bad;
            let error = parse("p", &fields.join(" ")).unwrap_err().to_string();
            assert!(error.starts_with(&format!("p:1: {field} is {bad:?}, expected ")), "{error}");
        }
        assert!(parse("p", "0 0 0 0 0 0 1e-12\n1e6 -1e6 0 1e6 0 0 1e6").is_ok());
    }

    #[test]
    fn lines_of_wrong_length_and_no_lines_are_errors() {
        let error = parse("p", "1 2 3").unwrap_err().to_string();
        assert_eq!(error, "p:1: particle is \"1 2 3\", expected x, y, z, vx, vy, vz and mass");
        let error = parse("p", "# none\n").unwrap_err().to_string();
        let missing = "particle is missing at the end of the file";
        assert_eq!(error, format!("p:2: {missing}, expected x, y, z, vx, vy, vz and mass"));
    }
}
