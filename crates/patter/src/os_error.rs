//! Errors of the operating system, in the words of a person who uses files and programs.

use std::io::{self, ErrorKind};

/// Describes why something failed, without the number of the error and without the words of the standard library.
///
/// ```
/// use patter::os_error::describe;
/// let error = std::fs::read("/no/such/file").unwrap_err();
/// assert_eq!(error.to_string(), "No such file or directory (os error 2)");
/// assert_eq!(describe(&error), "no such file or folder");
/// ```
pub fn describe(error: &io::Error) -> String {
    let text = match error.kind() {
        ErrorKind::NotFound => "no such file or folder",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::AlreadyExists => "it already exists",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "a part of its path is not a folder",
        ErrorKind::DirectoryNotEmpty => "the folder is not empty",
        ErrorKind::StorageFull => "no space left on the disk",
        ErrorKind::QuotaExceeded => "the disk quota is exceeded",
        ErrorKind::FileTooLarge => "the file would be too large",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::InvalidFilename => "its name is too long or not allowed",
        ErrorKind::ExecutableFileBusy => "the program is being written",
        ErrorKind::ArgumentListTooLong => "the arguments are too long",
        ErrorKind::ConnectionRefused => "the connection was refused",
        ErrorKind::ConnectionReset => "the connection was reset",
        ErrorKind::BrokenPipe => "the reader is gone",
        ErrorKind::TimedOut => "it took too long",
        ErrorKind::InvalidData if error.raw_os_error().is_none() && error.to_string().contains("UTF-8") => {
            "it is not UTF-8 text"
        }
        _ if error.to_string().starts_with("failed to lookup address information") => {
            return "the host name was not found".to_owned();
        }
        _ => return plain(&error.to_string()),
    };
    // An error with a message of its own says more than its kind.
    match error.get_ref() {
        Some(own) if error.kind() != ErrorKind::InvalidData => plain(&own.to_string()),
        _ => text.to_owned(),
    }
}

/// Returns a message of the system without its number and its capital letter.
fn plain(text: &str) -> String {
    let text = text.split(" (os error ").next().unwrap_or(text).trim_end_matches('.');
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        // `TLS` keeps its letters.
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_no_numbers_and_no_capitals() {
        let table = [
            (io::Error::from_raw_os_error(2), "no such file or folder"),
            (io::Error::from_raw_os_error(13), "permission denied"),
            (io::Error::from_raw_os_error(20), "a part of its path is not a folder"),
            (io::Error::from_raw_os_error(24), "too many open files"),
            (io::Error::from(ErrorKind::AlreadyExists), "it already exists"),
            (io::Error::new(ErrorKind::AlreadyExists, "`a` is taken"), "`a` is taken"),
            (io::Error::other("TLS is off."), "TLS is off"),
            (io::read_to_string(&b"\xff"[..]).unwrap_err(), "it is not UTF-8 text"),
        ];
        for (error, expected) in table {
            assert_eq!(describe(&error), expected, "{error:?}");
        }
    }
}
