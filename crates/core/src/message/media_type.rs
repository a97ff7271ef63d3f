//! What a file contains, recognised by its content: a name can say anything.

/// The kinds of files that models read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An image.
    Image,
    /// A PDF document.
    Document,
    /// Text, which every model reads.
    Text,
}

/// The media types of the files that models read. Everything that is text has one type, whatever it is written in.
const READABLE: [(&str, MediaKind); 6] = [
    ("image/png", MediaKind::Image),
    ("image/jpeg", MediaKind::Image),
    ("image/gif", MediaKind::Image),
    ("image/webp", MediaKind::Image),
    ("application/pdf", MediaKind::Document),
    ("text/plain", MediaKind::Text),
];

/// Formats that models do not read: how their content begins, what they are called, and what to convert them to.
const UNREADABLE: [(&[u8], &str, &str); 11] = [
    (b"BM", "a BMP image", IMAGE),
    (b"II*\0", "a TIFF image", IMAGE),
    (b"MM\0*", "a TIFF image", IMAGE),
    (b"\0\0\x01\0", "an icon", IMAGE),
    (b"PK\x03\x04", "an archive or an office document", "export it as PDF, or attach the files in it"),
    (b"\xd0\xcf\x11\xe0", "an office document", "export it as PDF"),
    (b"\x1f\x8b", "a compressed file", "decompress it first"),
    (b"ID3", "audio", NONE),
    (b"OggS", "audio or video", NONE),
    (b"\x7fELF", "a program", NONE),
    (b"\0asm", "a program", NONE),
];
const IMAGE: &str = "convert it to PNG or JPEG";
const NONE: &str = "models read images (PNG, JPEG, GIF, WebP), PDF documents and UTF-8 text";
/// How far into a file the header of a PDF document may be.
const PDF_HEADER: usize = 1024;

impl MediaKind {
    /// Returns the kind of a media type, if models read it.
    ///
    /// ```
    /// use patter_core::message::attachment::MediaKind;
    /// assert_eq!(MediaKind::of_type("image/webp"), Some(MediaKind::Image));
    /// assert_eq!(MediaKind::of_type("video/mp4"), None);
    /// ```
    pub fn of_type(media_type: &str) -> Option<Self> {
        READABLE.iter().find(|(known, _)| *known == media_type).map(|(_, kind)| *kind)
    }

    /// Returns the kind and the media type of a content, or of its beginning, if models read it.
    ///
    /// ```
    /// use patter_core::message::attachment::MediaKind;
    /// assert_eq!(MediaKind::of_content(b"%PDF-1.7"), Some((MediaKind::Document, "application/pdf")));
    /// assert_eq!(MediaKind::of_content(b"\0\x01"), None);
    /// ```
    pub fn of_content(content: &[u8]) -> Option<(Self, &'static str)> {
        let media_type = media_type(content).ok()?;
        Some((Self::of_type(media_type)?, media_type))
    }

    /// Returns what files of the kind are called, in the plural.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Document => "PDF documents",
            Self::Text => "text files",
        }
    }
}

/// Returns the media type of a content, if models read it. If not, returns what it seems to be, and what to do about it.
pub(super) fn media_type(content: &[u8]) -> Result<&'static str, (&'static str, &'static str)> {
    let is_riff = |format: &[u8]| content.starts_with(b"RIFF") && content.get(8..12) == Some(format);
    if content.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Ok("image/png");
    }
    if content.starts_with(b"\xff\xd8\xff") {
        return Ok("image/jpeg");
    }
    if content.starts_with(b"GIF87a") || content.starts_with(b"GIF89a") {
        return Ok("image/gif");
    }
    if is_riff(b"WEBP") {
        return Ok("image/webp");
    }
    if is_riff(b"WAVE") {
        return Err(("audio", NONE));
    }
    let start = content.get(..PDF_HEADER).unwrap_or(content);
    let is_text = std::str::from_utf8(content).is_ok_and(|text| !text.bytes().any(is_binary));
    if content.starts_with(b"%PDF-") || !is_text && memchr::memmem::find(start, b"%PDF-").is_some() {
        return Ok("application/pdf");
    }
    // Texts may begin with the letters of other formats.
    if is_text {
        return Ok("text/plain");
    }
    if content.get(4..8) == Some(b"ftyp") {
        return Err(match content.get(8..12) {
            Some(b"heic" | b"heix" | b"mif1" | b"avif") => ("a HEIC or AVIF image", IMAGE),
            _ => ("a video", NONE),
        });
    }
    if let Some((_, what, hint)) = UNREADABLE.iter().find(|(magic, _, _)| content.starts_with(magic)) {
        return Err((what, hint));
    }
    if content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff") {
        return Err(("UTF-16 text", "convert it to UTF-8"));
    }
    Err(("neither UTF-8 text nor a known format", NONE))
}

/// Returns whether a byte does not occur in text. Logs of terminals contain escapes and backspaces.
const fn is_binary(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b)
}
