//! Pictures as SVG.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::palette::Colour;
use super::picture::{Picture, Rectangle};

pub(super) fn write(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    let Picture { width, height, rectangles, lines, texts } = picture;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>"
    )?;
    // One path a colour: a tenth of the size of as many rectangles.
    let mut by_colour: BTreeMap<Colour, Vec<&Rectangle>> = BTreeMap::new();
    for rectangle in rectangles {
        by_colour.entry(rectangle.colour).or_default().push(rectangle);
    }
    for (colour, rectangles) in by_colour {
        write!(out, "<path fill=\"{}\" d=\"", hex(colour))?;
        for Rectangle { x, y, width, height, .. } in rectangles {
            write!(out, "M{x} {y}h{width}v{height}h-{width}z")?;
        }
        writeln!(out, "\"/>")?;
    }
    for line in lines {
        let ((x1, y1), (x2, y2), colour) = (line.from, line.to, hex(line.colour));
        writeln!(
            out,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\"/>"
        )?;
    }
    for text in texts {
        let anchor = if text.ends_at_x { " text-anchor=\"end\"" } else { "" };
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            text.x,
            text.y,
            escaped(&text.text)
        )?;
    }
    writeln!(out, "</svg>")
}

/// Returns a colour as HTML and SVG write it.
pub(crate) fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes text of a trace, which may be anything.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}
