//! Pictures as PNG.

use std::convert::Infallible;
use std::io::{self, Write};

use embedded_graphics::Drawable;
use embedded_graphics::draw_target::DrawTarget;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::ascii::FONT_7X13;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::primitives::{self, Primitive, PrimitiveStyle};
use embedded_graphics::text::{Alignment, Text};
use embedded_graphics::{Pixel, text::Baseline, text::TextStyleBuilder};

use super::palette::{BLACK, Colour, WHITE};
use super::picture::Picture;

pub(super) fn write(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    let mut pixels = Pixels::new(picture.width, picture.height);
    // Pixels are infallible.
    let Ok(()) = draw(picture, &mut pixels);
    let mut encoder = png::Encoder::new(out, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.bytes)?;
    writer.finish()?;
    Ok(())
}

fn draw(picture: &Picture, pixels: &mut Pixels) -> Result<(), Infallible> {
    for rectangle in &picture.rectangles {
        primitives::Rectangle::new(
            point(rectangle.x, rectangle.y),
            Size::new(rectangle.width, rectangle.height),
        )
        .into_styled(PrimitiveStyle::with_fill(rgb(rectangle.colour)))
        .draw(pixels)?;
    }
    for line in &picture.lines {
        primitives::Line::new(point(line.from.0, line.from.1), point(line.to.0, line.to.1))
            .into_styled(PrimitiveStyle::with_stroke(rgb(line.colour), 1))
            .draw(pixels)?;
    }
    let font = MonoTextStyle::new(&FONT_7X13, rgb(BLACK));
    for text in &picture.texts {
        let alignment = if text.ends_at_x { Alignment::Right } else { Alignment::Left };
        let style =
            TextStyleBuilder::new().alignment(alignment).baseline(Baseline::Alphabetic).build();
        Text::with_text_style(&text.text, point(text.x, text.y), font, style).draw(pixels)?;
    }
    Ok(())
}

fn point(x: u32, y: u32) -> Point {
    Point::new(x as i32, y as i32)
}

fn rgb([red, green, blue]: Colour) -> Rgb888 {
    Rgb888::new(red, green, blue)
}

/// Memory of an image, three bytes a pixel.
struct Pixels {
    size: Size,
    bytes: Vec<u8>,
}

impl Pixels {
    fn new(width: u32, height: u32) -> Self {
        let bytes = vec![WHITE[0]; width as usize * height as usize * 3];
        Self { size: Size::new(width, height), bytes }
    }
}

impl OriginDimensions for Pixels {
    fn size(&self) -> Size {
        self.size
    }
}

impl DrawTarget for Pixels {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        for Pixel(at, colour) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(at.x), u32::try_from(at.y)) else { continue };
            if x < self.size.width && y < self.size.height {
                let index = (y as usize * self.size.width as usize + x as usize) * 3;
                let colour = [colour.r(), colour.g(), colour.b()];
                self.bytes[index..index + 3].copy_from_slice(&colour);
            }
        }
        Ok(())
    }
}
