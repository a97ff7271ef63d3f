//! Sizes.

/// Returns a size as people read it.
///
/// ```
/// use patter_core::text::format_size;
/// assert_eq!(format_size(999), "999 bytes");
/// assert_eq!(format_size(12_345), "12.3 kB");
/// assert_eq!(format_size(5_000_000), "5.0 MB");
/// ```
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS.get(unit).unwrap_or(&"TB"))
}
