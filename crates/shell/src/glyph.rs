//! Characters that do not look like what they are: invisible, reordering, or blank to the eye and
//! not to the shell. A person who approves a line must see what the shell sees.

/// True for everything that may be in a file of text but never in a command.
pub(crate) fn hides(glyph: char) -> bool {
    let code = u32::from(glyph);
    match glyph {
        '\t' | '\n' => false,
        _ if glyph.is_control() => true,
        _ if code < 0xA0 => false,
        _ => HIDING.iter().any(|(first, last)| (*first..=*last).contains(&code)),
    }
}

/// Blanks that no shell splits at, zero widths, marks of direction, selectors, private use, tags.
const HIDING: &[(u32, u32)] = &[
    (0x00A0, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xE000, 0xF8FF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFF),
    (0xE0000, 0x0010_FFFF),
];
