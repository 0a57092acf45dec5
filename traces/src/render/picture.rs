//! Contents of a picture: what both formats can draw. **Units**: pixels.

use super::palette::Colour;

/// Width of a character of the text, and height of a line.
pub(super) const CHARACTER: u32 = 7;
pub(super) const LINE: u32 = 18;

/// Picture of a trace: rectangles, then lines, then texts.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) rectangles: Vec<Rectangle>,
    pub(super) lines: Vec<Line>,
    pub(super) texts: Vec<Text>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) colour: Colour,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) from: (u32, u32),
    pub(super) to: (u32, u32),
    pub(super) colour: Colour,
}

/// Text that begins or ends at a point of its base line.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) ends_at_x: bool,
    pub(super) text: String,
}

impl Picture {
    /// Adds text that begins at a point of its base line.
    pub(super) fn text(&mut self, x: u32, y: u32, text: String) {
        self.texts.push(Text { x, y, ends_at_x: false, text });
    }

    /// Adds a legend and notes below `y`, which end the picture.
    pub(super) fn close(
        &mut self,
        x: u32,
        mut y: u32,
        legend: Vec<(Colour, String)>,
        notes: Vec<String>,
    ) {
        for (colour, text) in legend {
            self.rectangles.push(Rectangle { x, y: y - 10, width: 12, height: 12, colour });
            self.text(x + 20, y, text);
            y += LINE;
        }
        for text in notes {
            self.text(x, y, text);
            y += LINE;
        }
        self.height = y;
    }
}
