//! The width of texts, estimated so that they fit their boxes in common fonts.

/// The widths of the characters from space to tilde in thousandths of the font size, as in Helvetica.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];

/// Other fonts are wider than Helvetica, by up to this many per cent.
const WIDEST: u32 = 115;

/// Returns the width of a text in a font of this size, rounded up.
pub(super) fn width(text: &str, size: u32) -> i32 {
    let units: u32 = text.chars().map(units).sum();
    i32::try_from((units.saturating_mul(size) / 1000).saturating_mul(WIDEST) / 100 + 1).unwrap_or(i32::MAX)
}

/// Cuts a text to a width, and marks the cut with an ellipsis.
pub(super) fn fit(text: &str, size: u32, max_width: i32) -> String {
    if width(text, size) <= max_width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        cut.push(character);
        if width(&cut, size) + width("…", size) > max_width {
            cut.pop();
            break;
        }
    }
    cut + "…"
}

fn units(character: char) -> u32 {
    let code = u32::from(character);
    match code.checked_sub(0x20).and_then(|index| WIDTHS.get(usize::try_from(index).ok()?)) {
        Some(width) => u32::from(*width),
        None => match code {
            0x2026 => 1000,
            // Marks that are drawn over the character before, joiners and variants.
            0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
            // East Asian characters and emoji.
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60 => 1000,
            0x1f000..=0x3ffff => 1250,
            _ => 700,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{fit, width};

    #[test]
    fn texts_are_measured_and_cut() {
        assert!(width("iii", 13) < width("mmm", 13));
        assert_eq!(width("e\u{301}", 13), width("e", 13));
        assert_eq!(fit("short", 13, 100), "short");
        let cut = fit(&"word ".repeat(1000), 13, 100);
        assert!(cut.ends_with('…') && width(&cut, 13) <= 100, "{cut}");
    }
}
