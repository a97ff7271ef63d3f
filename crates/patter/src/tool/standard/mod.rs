//! The tools that come with Patter.

mod fetch;

pub use fetch::fetch;

/// Toolboxes that are written in gram: their names and texts.
pub const TOOLBOXES: [(&str, &str); 2] =
    [("wikipedia", include_str!("wikipedia.gram")), ("hackerNews", include_str!("hackerNews.gram"))];
