//! Attachments: what a file is, how it is counted, and what logs have of it.

use patter_core::message::attachment::{
    Attachment, AttachmentContents, AttachmentError, MAX_FILE_BYTES, MAX_FILES, UserInput, readable,
};
use patter_core::message::context::{estimate_tokens, plan_compaction, sent_messages};
use patter_core::message::conversation::{Conversation, Message};
use patter_core::run::{Run, RunSpec, StartError};
use patter_core::session::{Log, LogEntry, session_pattern};
use serde_json::json;

fn kind(content: &[u8]) -> Result<String, String> {
    match Attachment::new("file", content) {
        Ok(attachment) => Ok(attachment.media_type),
        Err(AttachmentError::Unreadable { what, hint, .. }) => Err(format!("{what}: {hint}")),
        Err(error) => Err(error.to_string()),
    }
}

fn photo() -> Attachment {
    Attachment::new("photo.png", b"\x89PNG\r\n\x1a\n....").unwrap()
}

fn message(text: &str, attachments: Vec<Attachment>) -> Message {
    UserInput { text: text.into(), attachments }.into()
}

#[test]
fn files_are_recognised_by_their_content() {
    let readable: [(&[u8], &str); 9] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF....WEBPVP8 ", "image/webp"),
        (b"%PDF-1.4", "application/pdf"),
        (b"\xef\xbb\xbf\xff\x00 %PDF-1.4", "application/pdf"),
        (b"The header is %PDF-1.4", "text/plain"),
        (b"BMW and ID3 are words", "text/plain"),
        (b"<svg onload='alert(1)'/>\x1b[0m\n", "text/plain"),
    ];
    for (content, expected) in readable {
        assert_eq!(kind(content).as_deref(), Ok(expected), "{content:?}");
    }
    let all = "models read images (PNG, JPEG, GIF, WebP), PDF documents and UTF-8 text";
    let unreadable: [(&[u8], String); 8] = [
        (b"", "`file` is empty".into()),
        (b"BM\x00\x01", "a BMP image: convert it to PNG or JPEG".into()),
        (b"\0\0\0\x18ftypheic\0", "a HEIC or AVIF image: convert it to PNG or JPEG".into()),
        (b"\0\0\0\x18ftypmp42\0", format!("a video: {all}")),
        (b"RIFF....WAVEfmt ", format!("audio: {all}")),
        (b"PK\x03\x04\0", "an archive or an office document: export it as PDF, or attach the files in it".into()),
        (b"\xff\xfeh\0i\0", "UTF-16 text: convert it to UTF-8".into()),
        (b"caf\xe9", format!("neither UTF-8 text nor a known format: {all}")),
    ];
    for (content, expected) in unreadable {
        assert_eq!(kind(content), Err(expected), "{content:?}");
    }
}

#[test]
fn names_are_the_last_part_of_a_path_and_can_be_shown() {
    for (path, expected) in [
        ("/home/ada/photo.png", "photo.png"),
        ("folder/", "folder"),
        ("", "file"),
        ("a\u{202e}gnp.exe\n", "a\u{fffd}gnp.exe\u{fffd}"),
    ] {
        assert_eq!(Attachment::new(path, b"x").unwrap().name, expected);
    }
    assert_eq!(Attachment::new(&"x".repeat(500), b"x").unwrap().name.chars().count(), 201);
}

#[test]
fn messages_have_limits() {
    let error = Attachment::new("a.txt", &vec![b'x'; MAX_FILE_BYTES + 1]).unwrap_err();
    assert_eq!(error.to_string(), "`a.txt` is larger than 20 MiB");
    let start = |attachments| {
        Run::start(RunSpec::default(), Vec::new(), UserInput { text: String::new(), attachments }, 0).map(|_| ())
    };
    let large = Attachment { bytes: 11 << 20, ..photo() };
    assert_eq!(start(vec![photo()]), Ok(()));
    assert_eq!(start(Vec::new()), Err(StartError::EmptyInput));
    let error = start(vec![large; 3]).unwrap_err();
    assert_eq!(
        (error.name(), error.to_string().as_str()),
        ("ValidationError", "the attachments of a message are larger than 32 MiB")
    );
    assert_eq!(start(vec![photo(); MAX_FILES + 1]).unwrap_err().to_string(), "a message has more than 20 attachments");
}

#[test]
fn contents_are_kept_once_and_checked() {
    let mut contents = AttachmentContents::default();
    let one = contents.attach("one.txt", b"same".to_vec()).unwrap();
    let other = contents.attach("other.txt", b"same".to_vec()).unwrap();
    assert_eq!(one.sha256, other.sha256);
    assert_eq!(format!("{contents:?}"), format!("{{{:?}: 4}}", one.sha256), "contents are not shown");
    assert!(!contents.insert(&one.sha256, b"different"[..].into()));
    assert_eq!(contents.get(&one), Some(&b"same"[..]));
    assert!(contents.of_messages(&vec![Message::user("Hi")].into()).is_empty());
    assert_eq!(contents.of_messages(&vec![message("Hi", vec![other])].into()), contents);
}

#[test]
fn logs_have_hashes_and_old_ones_stay_the_same() {
    let spec = || RunSpec { agent: "a".into(), ..RunSpec::default() };
    let input = UserInput { text: "What is this?".into(), attachments: vec![photo()] };
    let run = Run::start(spec(), Vec::new(), input, 5).unwrap();
    let start = serde_json::to_value(run.to_start()).unwrap();
    let sha256 = photo().sha256;
    let expected = json!([{"name": "photo.png", "media_type": "image/png", "bytes": 12, "sha256": sha256}]);
    assert_eq!(start["attachments"], expected);
    assert_eq!(Run::from_start(serde_json::from_value(start).unwrap(), Vec::new()).unwrap(), run);
    assert_eq!(Run::load(&serde_json::to_string(&run).unwrap()).unwrap(), run);

    let plain = Run::start(spec(), Vec::new(), "Hello", 5).unwrap();
    assert!(!serde_json::to_string(&plain).unwrap().contains("attachments"));
    assert!(!serde_json::to_string(&plain.to_start()).unwrap().contains("attachments"));
    assert_eq!(serde_json::to_string(&Message::user("Hello")).unwrap(), r#"{"role":"user","text":"Hello"}"#);

    let started = LogEntry::RunStarted {
        run: vec![],
        frame: None,
        bindings: String::new(),
        start: run.to_start(),
        traceparent: None,
    };
    let mut log = Log::default();
    log.apply(started).unwrap();
    assert_eq!(
        Log::read([serde_json::to_string(&log.fork("x", 1)[0]).unwrap()]).unwrap().conversation(),
        log.conversation()
    );
    let pattern = session_pattern("s", &serde_json::Map::new(), &log);
    let expected =
        format!("[:Attachment {{ name: \"photo.png\", mediaType: \"image/png\", bytes: 12, sha256: \"{sha256}\" }}]");
    let flat = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("name: \"photo.png\"") && flat.contains(&sha256), "{pattern}\n{expected}");
}

#[test]
fn files_count_as_tokens() {
    let tokens = |attachment: Attachment| estimate_tokens(&[message("", vec![attachment])]);
    let pdf = |bytes| Attachment { media_type: "application/pdf".into(), bytes, ..photo() };
    assert_eq!(tokens(photo()), 1604);
    assert_eq!(tokens(Attachment { bytes: 9_000_000, ..photo() }), 1604, "providers scale images down");
    assert_eq!(tokens(pdf(40_000)), 2004);
    assert_eq!(tokens(pdf(1_000_000)), 20_004);
    assert_eq!(tokens(pdf(20_000_000)), 80_004);
    assert_eq!(tokens(Attachment { media_type: "text/plain".into(), bytes: 4000, ..photo() }), 1004);
}

#[test]
fn a_compacted_conversation_still_has_the_files_of_the_question() {
    let question = message("What is in the photo?", vec![photo()]);
    let long = "word ".repeat(2000);
    let conversation: Conversation =
        vec![question.clone(), Message::assistant(long.clone(), vec![]), Message::assistant(long, vec![])].into();
    let plan = plan_compaction(&conversation, 3000, true).unwrap();
    let transcript = plan.transcript.unwrap();
    assert!(transcript.contains("[attached: photo.png (image/png, 12 bytes)]"), "{transcript}");
    let mut compacted = conversation.clone();
    compacted.push(Message::Compacted { summary: "They spoke.".into(), kept_from: plan.kept_from, result_chars: None });
    let sent = sent_messages(&compacted);
    assert_eq!(sent.first().unwrap().attachments(), question.attachments());
    compacted.push(Message::user("And now?"));
    assert!(sent_messages(&compacted).iter().all(|message| message.attachments().is_empty()));
}

#[test]
fn people_read_names_and_sizes() {
    assert_eq!(readable("Look", &[]), "Look");
    assert_eq!(readable("Look", &[photo()]), "Look\n\n[attached: photo.png (image/png, 12 bytes)]");
    assert_eq!(readable("", &[photo()]), "[attached: photo.png (image/png, 12 bytes)]");
    let mut input = UserInput::from("One");
    input.append(UserInput { text: "two".into(), attachments: vec![photo()] });
    assert_eq!((input.text.as_str(), input.attachments.len(), input.title().as_str()), ("One\n\ntwo", 1, "One\n\ntwo"));
    assert_eq!(UserInput { text: " ".into(), attachments: vec![photo()] }.title(), "photo.png");
}
