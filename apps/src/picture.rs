//! Heat map of a matrix.

use std::io::{self, Write};

use crate::Matrix;

/// Length of the longer side of a picture, in pixels, at most.
pub const LONGEST_SIDE: usize = 1024;

/// Colours from cold to hot, evenly spaced and of increasing lightness, so that the picture is
/// readable in print and for most colour-blind readers.
const COLOURS: [[u8; 3]; 10] = [
    [0x00, 0x00, 0x04],
    [0x1b, 0x0c, 0x41],
    [0x4a, 0x0c, 0x6b],
    [0x78, 0x1c, 0x6d],
    [0xa5, 0x2c, 0x60],
    [0xcf, 0x44, 0x46],
    [0xed, 0x69, 0x25],
    [0xfb, 0x9b, 0x06],
    [0xf7, 0xd1, 0x3d],
    [0xfc, 0xff, 0xa4],
];

/// Writes `matrix` as a PNG heat map, from its coldest to its hottest cell. A side longer than
/// [`LONGEST_SIDE`] is scaled down, the other with it; a pixel then shows the mean of its cells.
///
/// **Errors**: those of `out`.
pub fn write_heat_map(matrix: &Matrix, out: impl Write) -> io::Result<()> {
    let (width, height) = scaled_size(matrix.rows(), matrix.cols());
    let means = box_means(matrix, width, height);
    let coldest = means.iter().copied().fold(f64::INFINITY, f64::min);
    let hottest = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A matrix of one temperature is all cold, without a division by zero.
    let scale = if hottest > coldest { 255.0 / (hottest - coldest) } else { 0.0 };
    let pixels: Vec<u8> =
        means.iter().map(|mean| ((mean - coldest) * scale).round() as u8).collect();

    let mut encoder = png::Encoder::new(out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette());
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(())
}

/// Returns width and height of the picture of a `rows x cols` matrix.
fn scaled_size(rows: usize, cols: usize) -> (usize, usize) {
    let longest = rows.max(cols).max(LONGEST_SIDE);
    let scaled = |side: usize| (side * LONGEST_SIDE).div_ceil(longest);
    (scaled(cols), scaled(rows))
}

/// Computes the mean of the cells under each pixel, row by row.
fn box_means(matrix: &Matrix, width: usize, height: usize) -> Vec<f64> {
    let mut means = Vec::with_capacity(width * height);
    for y in 0..height {
        let rows = y * matrix.rows() / height..(y + 1) * matrix.rows() / height;
        for x in 0..width {
            let cols = x * matrix.cols() / width..(x + 1) * matrix.cols() / width;
            let cells = (rows.len() * cols.len()) as f64;
            let sum: f64 = rows.clone().flat_map(|row| &matrix.row(row)[cols.clone()]).sum();
            means.push(sum / cells);
        }
    }
    means
}

/// Interpolates [`COLOURS`] to 256 entries of red, green and blue.
fn palette() -> Vec<u8> {
    (0..256)
        .flat_map(|entry| {
            let place = entry as f64 / 255.0 * (COLOURS.len() - 1) as f64;
            let below = (place as usize).min(COLOURS.len() - 2);
            let share = place - below as f64;
            std::array::from_fn::<u8, 3, _>(|part| {
                let (low, high) = (COLOURS[below][part], COLOURS[below + 1][part]);
                (f64::from(low) * (1.0 - share) + f64::from(high) * share).round() as u8
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(matrix: &Matrix) -> (u32, u32, Vec<u8>) {
        let mut file = Vec::new();
        write_heat_map(matrix, &mut file).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        (reader.info().width, reader.info().height, pixels)
    }

    #[test]
    fn small_matrix_is_one_pixel_a_cell_from_coldest_to_hottest() {
        let mut matrix = Matrix::zeros(2, 3);
        matrix.row_mut(0).copy_from_slice(&[-1.0, 0.0, 4.0]);
        matrix.row_mut(1).copy_from_slice(&[1.5, 1.5, 1.5]);
        assert_eq!(decode(&matrix), (3, 2, vec![0, 51, 255, 128, 128, 128]));
    }

    #[test]
    fn one_temperature_is_no_division_by_zero() {
        assert_eq!(decode(&Matrix::zeros(1, 2)), (2, 1, vec![0, 0]));
    }

    #[test]
    fn large_matrix_keeps_its_aspect() {
        assert_eq!(scaled_size(1024, 512), (512, 1024));
        assert_eq!(scaled_size(1025, 1025), (1024, 1024));
        assert_eq!(scaled_size(4098, 2050), (513, 1024));
        assert_eq!(scaled_size(1, 1 << 24), (1024, 1));
    }

    #[test]
    fn every_cell_counts_in_one_pixel() {
        let mut matrix = Matrix::zeros(3, 2049);
        matrix.row_mut(1).fill(3.0);
        let (width, height) = scaled_size(3, 2049);
        let means = box_means(&matrix, width, height);
        assert_eq!((width, height), (1024, 2));
        assert_eq!(means[..width], vec![0.0; width]);
        assert_eq!(means[width..], vec![1.5; width]);
    }

    #[test]
    fn palette_starts_and_ends_with_its_first_and_last_colour() {
        let palette = palette();
        assert_eq!(palette.len(), 3 * 256);
        assert_eq!(palette[..3], COLOURS[0]);
        assert_eq!(palette[3 * 255..], COLOURS[9]);
    }
}
