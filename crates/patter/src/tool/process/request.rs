//! What a program and the supervisor of a command tell each other over a socket.

use super::command::{ProcessCommand, StdinSource};
use super::confine::Confinement;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Asks the supervisor to terminate the command and everything it started.
pub(super) const TERMINATE: u8 = b't';
/// Asks the supervisor to kill the command and everything it started.
pub(super) const KILL: u8 = b'k';
/// The maximum size of a request. The system allows less for the arguments of a program.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What the supervisor reports, one JSON value per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Report {
    /// The command runs, with this process id.
    Started(i32),
    /// The command could not be started, with this error of the system.
    Failed(i32),
    /// The command was not started, for this reason.
    Refused(String),
    /// The command ended with this status, in the form of the system.
    Exited(i32),
    /// The command was killed, because it started too many processes.
    Crowded,
}

/// The part of a request that is not a list of byte strings.
#[derive(Serialize, Deserialize)]
struct Header {
    arguments: usize,
    confinement: Confinement,
}

/// Encodes a command as byte strings, each after its length: arguments and variables need not be text.
pub(super) fn encode(command: &ProcessCommand) -> io::Result<Vec<u8>> {
    let header = Header { arguments: command.arguments.len(), confinement: command.confinement.clone() };
    let header = serde_json::to_vec(&header).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    push(&mut bytes, &header)?;
    push(&mut bytes, command.program.as_bytes())?;
    push(&mut bytes, command.folder.as_os_str().as_bytes())?;
    for argument in &command.arguments {
        push(&mut bytes, argument.as_bytes())?;
    }
    for (name, value) in &command.environment {
        push(&mut bytes, name.as_bytes())?;
        push(&mut bytes, value.as_bytes())?;
    }
    if bytes.len() > MAX_BYTES { Err(io::ErrorKind::ArgumentListTooLong.into()) } else { Ok(bytes) }
}

/// Returns the number of bytes of a request as it is sent before it.
pub(super) fn encode_length(bytes: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
    Ok(length.to_le_bytes())
}

/// Returns the number of bytes of the request that follows.
pub(super) fn decode_length(bytes: [u8; 4]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
    if length > MAX_BYTES { Err(malformed()) } else { Ok(length) }
}

/// Decodes a command.
pub(super) fn decode(mut bytes: &[u8]) -> io::Result<ProcessCommand> {
    let header: Header = serde_json::from_slice(take(&mut bytes)?).map_err(io::Error::other)?;
    let mut next = || Ok::<_, io::Error>(OsStr::from_bytes(take(&mut bytes)?).to_owned());
    let program = next()?;
    let folder = next()?;
    let arguments = (0..header.arguments).map(|_| next()).collect::<io::Result<_>>()?;
    let mut environment = Vec::new();
    while !bytes.is_empty() {
        let name = OsString::from_vec(take(&mut bytes)?.to_vec());
        let value = OsString::from_vec(take(&mut bytes)?.to_vec());
        environment.push((name, value));
    }
    Ok(ProcessCommand {
        program,
        arguments,
        environment,
        folder: folder.into(),
        // The stdin of the command comes with the request.
        stdin: StdinSource::Null,
        confinement: header.confinement,
    })
}

fn push(bytes: &mut Vec<u8>, text: &[u8]) -> io::Result<()> {
    bytes.extend_from_slice(&encode_length(text)?);
    bytes.extend_from_slice(text);
    Ok(())
}

fn take<'b>(bytes: &mut &'b [u8]) -> io::Result<&'b [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let (text, rest) = rest.split_at_checked(decode_length(*length)?).ok_or_else(malformed)?;
    *bytes = rest;
    Ok(text)
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the request to supervise a command is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_what_was_encoded() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b' ', b'\n']);
        let command = ProcessCommand::new(odd.clone())
            .args([OsStr::new(""), &odd, OsStr::new("--x")])
            .envs([(OsStr::new("A"), odd.as_os_str()), (OsStr::new("B"), OsStr::new(""))])
            .folder(odd.as_ref());
        let bytes = encode(&command).unwrap();
        let decoded = decode(&bytes).unwrap();
        assert_eq!((&decoded.program, &decoded.arguments), (&command.program, &command.arguments));
        assert_eq!((&decoded.environment, &decoded.folder), (&command.environment, &command.folder));
    }

    #[test]
    fn refuses_malformed_requests() {
        let bytes = encode(&ProcessCommand::new("ls").args(["-l"]).envs([("A", "b")])).unwrap();
        for end in 0..bytes.len() {
            // A request that ends after its arguments has fewer variables, which the length before it rules out.
            if let Ok(decoded) = decode(&bytes[..end]) {
                assert!(decoded.environment.is_empty());
            }
        }
        assert!(decode_length(u32::MAX.to_le_bytes()).is_err());
    }
}
