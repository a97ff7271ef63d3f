//! Attachments of messages, in every protocol.

use super::RequestParts;
use patter_core::message::attachment::{AttachmentContents, UserInput};
use patter_core::message::conversation::{Conversation, Message};
use patter_core::message::request::Request;
use patter_core::provider::{Provider, Server, known_model};
use patter_core::wire::{Codec, Streaming, Wire};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";
const GIF: &[u8] = b"GIF89a....";
const PDF: &[u8] = b"%PDF-1.7\n....";

/// Returns a message with files, and their contents.
fn message(text: &str, files: &[(&str, &[u8])]) -> (Message, AttachmentContents) {
    let mut contents = AttachmentContents::default();
    let attachments = files.iter().map(|(name, content)| contents.attach(name, content.to_vec()).unwrap()).collect();
    (UserInput { text: text.into(), attachments }.into(), contents)
}

fn check(wire: Wire, model: &str, files: &[(&str, &[u8])]) -> Result<(), String> {
    let (message, contents) = message("Look", files);
    let model = model.parse().unwrap();
    let parts = RequestParts { messages: vec![message].into(), model, ..RequestParts::new(wire) };
    let request = Request { contents: &contents, ..parts.request() };
    let codec = Codec::new(wire, Server::own(Provider::OPENAI));
    let known = known_model(&parts.model);
    codec.check_attachments(&request, known.as_ref()).map_err(|error| format!("{error}; {}", error.hint()))
}

#[test]
fn every_protocol_has_a_form_for_them() {
    for wire in Wire::ALL {
        let mut files = vec![("photo.png", PNG), ("a \"<b>.md", b"# Notes")];
        if wire != Wire::Ollama {
            files.insert(1, ("report.pdf", PDF));
        }
        let (message, contents) = message("What is this?", &files);
        let mut parts = RequestParts { messages: vec![message].into(), ..RequestParts::new(wire) };
        parts.tools.clear();
        let request = Request { contents: &contents, ..parts.request() };
        let body = String::from_utf8(wire.encode(&request, Streaming::Off)).unwrap();
        insta::assert_snapshot!(format!("attachments_{}", wire.name()), body);
    }
}

#[test]
fn a_message_may_consist_of_a_file() {
    for wire in Wire::ALL {
        let (message, contents) = message("", &[("photo.png", PNG)]);
        let parts = RequestParts { messages: vec![message].into(), ..RequestParts::new(wire) };
        let request = Request { contents: &contents, ..parts.request() };
        let body = String::from_utf8(wire.encode(&request, Streaming::Off)).unwrap();
        assert!(!body.contains(r#""text":"""#), "{wire:?}: {body}");
        assert!(body.contains("iVBORw0KGgouLi4u"), "{wire:?}: {body}");
    }
}

#[test]
fn what_is_missing_is_described_and_not_kept() {
    for wire in Wire::ALL {
        let (message, contents) = message("Look", &[("photo.png", PNG)]);
        // Enough messages for their JSON to be kept.
        let many = (0..20).flat_map(|_| [message.clone(), Message::assistant("Nice.", Vec::new())]);
        let messages: Conversation = many.chain([Message::user("And?")]).collect();
        let parts = RequestParts { messages, ..RequestParts::new(wire) };
        let encode = |contents| {
            let request = Request { contents, ..parts.request() };
            String::from_utf8(wire.encode(&request, Streaming::Off)).unwrap()
        };
        let without = encode(AttachmentContents::NONE);
        assert!(without.contains("(The attachment photo.png (image/png, 12 bytes) is not available.)"), "{without}");
        let with = encode(&contents);
        assert_eq!(with.matches("iVBORw0KGgouLi4u").count(), 20, "{with}");
        assert!(!encode(AttachmentContents::NONE).contains("iVBORw0KGgo"));
    }
}

#[test]
fn models_that_do_not_read_them_are_not_asked() {
    let png: &[(&str, &[u8])] = &[("photo.png", PNG)];
    let pdf: &[(&str, &[u8])] = &[("report.pdf", PDF)];
    let text: &[(&str, &[u8])] = &[("notes.md", b"# Notes")];
    let gif: &[(&str, &[u8])] = &[("moving.gif", GIF)];
    for (wire, model, files) in [
        (Wire::Chat, "OpenAI/gpt-4o", png),
        (Wire::Chat, "OpenAI/gpt-4o", pdf),
        (Wire::Chat, "OpenAI/gpt-4", text),
        (Wire::Chat, "OpenAI/my-own-model", png),
        (Wire::Anthropic, "Anthropic/claude-sonnet-4-6", pdf),
        (Wire::Ollama, "Ollama/llava", png),
    ] {
        assert_eq!(check(wire, model, files), Ok(()), "{model}");
    }
    let expected = [
        (
            check(Wire::Chat, "OpenAI/gpt-4", png),
            "`OpenAI/gpt-4` does not read images, so `photo.png` cannot be sent to it; use a model that reads images \
             (`patter models` lists them), or start a new session without it",
        ),
        (
            check(Wire::Chat, "Mistral/mistral-large-latest", pdf),
            "`Mistral/mistral-large-latest` does not read PDF documents, so `report.pdf` cannot be sent to it; use a model \
             that reads documents (`patter models` lists them), or attach the text of the document",
        ),
        (
            check(Wire::Ollama, "Ollama/llava", pdf),
            "the API of Ollama does not accept files of the type `application/pdf`, such as `report.pdf`; convert it to a \
             format that the provider accepts, or use a model of another provider",
        ),
        (
            check(Wire::Gemini, "Google/gemini-3.5-flash", gif),
            "the API of Google does not accept files of the type `image/gif`, such as `moving.gif`; convert it to a format \
             that the provider accepts, or use a model of another provider",
        ),
    ];
    for (found, expected) in expected {
        assert_eq!(found, Err(expected.to_owned()));
    }
    let (message, _) = message("Look", png);
    let parts = RequestParts { messages: vec![message].into(), ..RequestParts::new(Wire::Chat) };
    let codec = Codec::new(Wire::Chat, Server::own(Provider::OPENAI));
    let error = codec.check_attachments(&parts.request(), None).unwrap_err();
    assert_eq!(error.to_string(), "the content of the attachment `photo.png` is not available");
}
