//! Decoding of bodies to text.

/// The characters of windows-1252 at 0x80 to 0x9f, where Latin-1 has unused control characters.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Decodes a body to text: by its byte order mark, else by the charset of its content type, else as UTF-8.
///
/// Latin-1 is read as windows-1252, as browsers do. Bytes that cannot be decoded are replaced by `�`.
pub(crate) fn decode(body: &[u8], content_type: &str) -> String {
    if let Some(body) = body.strip_prefix(b"\xef\xbb\xbf") {
        return String::from_utf8_lossy(body).into_owned();
    }
    if let Some(body) = body.strip_prefix(b"\xff\xfe") {
        return utf_16(body, u16::from_le_bytes);
    }
    if let Some(body) = body.strip_prefix(b"\xfe\xff") {
        return utf_16(body, u16::from_be_bytes);
    }
    let content_type = content_type.to_ascii_lowercase();
    let charset = content_type.split_once("charset=").map_or("", |(_, charset)| charset);
    let charset = charset.trim_start().trim_start_matches(['"', '\'']);
    let end = charset.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(charset.len());
    match charset.get(..end).unwrap_or_default() {
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "windows-1252" | "cp1252" => {
            body.iter().copied().map(windows_1252).collect()
        }
        "utf-16" | "utf-16le" => utf_16(body, u16::from_le_bytes),
        "utf-16be" => utf_16(body, u16::from_be_bytes),
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

fn windows_1252(byte: u8) -> char {
    let in_table = usize::from(byte).checked_sub(0x80).and_then(|at| WINDOWS_1252.get(at));
    in_table.copied().unwrap_or(char::from(byte))
}

/// Decodes UTF-16. Half a unit at the end of a truncated body is ignored.
fn utf_16(body: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, _) = body.as_chunks::<2>();
    let characters = char::decode_utf16(units.iter().copied().map(unit));
    characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
