//! Conversations that share their messages.

use patter_core::message::conversation::{Conversation, Message, ToolCall};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Change {
    Push(Message),
    Truncate(usize),
    /// Continue with a copy, and keep the original.
    Copy,
    /// Continue with one of the copies.
    Switch(usize),
}

fn message() -> impl Strategy<Value = Message> {
    // Few different messages, so that copies often add the same one.
    let call = |id: u8| ToolCall { id: id.to_string(), tool: "t".into(), arguments: String::new() };
    prop_oneof![
        (0..3u8).prop_map(|text| Message::user(text.to_string())),
        (0..3u8).prop_map(move |id| Message::assistant("", vec![call(id)])),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => message().prop_map(Change::Push),
        1 => (0..40usize).prop_map(Change::Truncate),
        2 => Just(Change::Copy),
        2 => (0..8usize).prop_map(Change::Switch),
    ]
}

fn assert_same(conversation: &Conversation, expected: &[Message]) {
    assert_eq!(conversation.to_vec(), expected);
    assert_eq!(
        conversation.iter().rev().cloned().collect::<Vec<_>>(),
        expected.iter().rev().cloned().collect::<Vec<_>>()
    );
    assert_eq!((conversation.len(), conversation.last()), (expected.len(), expected.last()));
    assert_eq!(*conversation, Conversation::from(expected));
    for id in ["0", "1", "2"] {
        let has_call = expected.iter().flat_map(Message::calls).any(|call| call.id == id);
        assert_eq!(conversation.has_call(id), has_call, "{id}");
    }
    let middle = expected.len() / 2;
    assert!(conversation.since(middle).eq(&expected[middle..]));
}

proptest! {
    #[test]
    fn copies_are_independent(changes in prop::collection::vec(change(), 0..80)) {
        let mut copies = vec![(Conversation::default(), Vec::new())];
        let mut current = 0;
        for change in changes {
            let (conversation, expected) = &mut copies[current];
            match change {
                Change::Push(message) => {
                    conversation.push(message.clone());
                    expected.push(message);
                }
                Change::Truncate(len) => {
                    conversation.truncate(len);
                    expected.truncate(len);
                }
                Change::Copy => {
                    let copy = (conversation.clone(), expected.clone());
                    copies.push(copy);
                    current = copies.len() - 1;
                }
                Change::Switch(index) => current = index % copies.len(),
            }
            for (conversation, expected) in &copies {
                assert_same(conversation, expected);
            }
        }
    }
}

#[test]
fn copies_that_grow_alike_share_messages() {
    let mut run = Conversation::from(vec![Message::user("Hello")]);
    let mut log = run.clone();
    for number in 0..100 {
        let message = Message::user(number.to_string());
        run.push(message.clone());
        log.push(message);
        assert!(std::ptr::eq(run.last().unwrap(), log.last().unwrap()), "{number}");
    }
    log.truncate(50);
    log.push(Message::user("another"));
    assert_eq!((run.len(), log.len()), (101, 51));
    assert!(!std::ptr::eq(run.first().unwrap(), log.first().unwrap()));
}
