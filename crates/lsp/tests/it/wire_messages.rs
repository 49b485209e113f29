//! The envelope, in both directions.

use lsp::{
    Decoder, Frame, FrameLimits, Message, MessageError, MessageId, ResponseError, encode_notification,
    encode_request, encode_response,
};
use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};

/// A message in a form that can be compared.
fn line(message: &Message<'_>) -> String {
    let text = |params: &Option<&RawValue>| params.map_or("-", RawValue::get).to_owned();
    match message {
        Message::Request { id, method, params } => format!("request {id} {method} {}", text(params)),
        Message::Notification { method, params } => format!("notification {method} {}", text(params)),
        Message::Response { id, outcome } => {
            let id = id.as_ref().map_or("null".to_owned(), MessageId::to_string);
            match outcome {
                Ok(result) => format!("result {id} {}", result.get()),
                Err(error) => format!("error {id} {error} {}", error.data.clone().unwrap_or_default()),
            }
        }
    }
}

#[test]
fn messages_are_told_apart() {
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}"#,
            r#"request 1 m {"a":[1]}"#,
        ),
        (r#" { "method" : "m" , "id" : "x\"y" } "#, r#"request "x\"y" m -"#),
        (
            r#"{"id":-9223372036854775808,"method":"m","params":null}"#,
            "request -9223372036854775808 m null",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"$/p","params":[]}"#,
            "notification $/p []",
        ),
        (r#"{"method":"a\u002fb","id":null}"#, "notification a/b -"),
        (r#"{"id":1,"result":null}"#, "result 1 null"),
        (
            r#"{"id":1,"result": "a b" ,"error":null,"other":{"id":2}}"#,
            r#"result 1 "a b""#,
        ),
        (
            r#"{"id":1,"result":{},"error":{"code":-1,"message":"no"}}"#,
            "error 1 no (code -1) null",
        ),
        (
            r#"{"error":{"code":-32700,"message":"?","data":[1]},"id":null}"#,
            "error null ? (code -32700) [1]",
        ),
        (
            r#"{"id":1,"error":"oops"}"#,
            r#"error 1 the server failed with "oops" (code -32603) null"#,
        ),
        (
            r#"{"id":1}"#,
            "error 1 the answer has neither a result nor an error (code -32603) null",
        ),
        ("{\"id\":1,\"result\":1}\r\n\r\n", "result 1 1"),
    ];
    for (body, expected) in cases {
        assert_eq!(
            line(&Message::parse(body.as_bytes()).unwrap()),
            expected,
            "{body}"
        );
    }
}

#[test]
fn what_is_no_message_is_refused() {
    let json = |problem: &str, excerpt: &str| MessageError::Json {
        problem: problem.to_owned(),
        excerpt: excerpt.to_owned(),
    };
    let found = |found: &str| found.to_owned();
    let cases: Vec<(&[u8], MessageError)> = vec![
        (b"", json("EOF while parsing a value at line 1 column 0", "")),
        (b"{", json("EOF while parsing an object at line 1 column 1", "{")),
        (b"{} {}", json("trailing characters at line 1 column 4", "{} {}")),
        (
            b"1",
            json(
                "invalid type: integer `1`, expected struct Envelope at line 1 column 1",
                "1",
            ),
        ),
        (
            b"{\"id\":1,\"id\":1}",
            json("duplicate field `id` at line 1 column 12", r#"{"id":1,"id":1}"#),
        ),
        (
            b"{\"id\":1,\"result\":\"\xff\"}",
            json(
                "invalid unicode code point at line 1 column 19",
                "{\"id\":1,\"result\":\"\u{fffd}\"}",
            ),
        ),
        (b" [{\"id\":1,\"result\":1}]", MessageError::Batch),
        (b"{}", MessageError::Neither),
        (b"{\"result\":1}", MessageError::Neither),
        (
            b"{\"jsonrpc\":\"2.1\",\"id\":1,\"result\":1}",
            MessageError::WrongVersion {
                found: found("\"2.1\""),
            },
        ),
        (
            b"{\"jsonrpc\":2.0,\"id\":1,\"result\":1}",
            MessageError::WrongVersion { found: found("2.0") },
        ),
        (
            b"{\"id\":1.5,\"result\":1}",
            MessageError::InvalidId { found: found("1.5") },
        ),
        (
            b"{\"id\":[],\"result\":1}",
            MessageError::InvalidId { found: found("[]") },
        ),
        (
            b"{\"id\":9223372036854775808,\"result\":1}",
            MessageError::InvalidId {
                found: found("9223372036854775808"),
            },
        ),
        (
            b"{\"method\":7}",
            MessageError::InvalidMethod { found: found("7") },
        ),
    ];
    for (body, expected) in cases {
        let error = Message::parse(body).unwrap_err();
        assert_eq!(error, expected, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_message_is_one_buffer_with_the_right_length() {
    let error = ResponseError::new(-1, "no");
    let cases = [
        (
            encode_request(&MessageId::Number(i64::MIN), "a\"b", &json!({"é": 1})),
            r#"{"jsonrpc":"2.0","id":-9223372036854775808,"method":"a\"b","params":{"é":1}}"#,
        ),
        (
            encode_request(&MessageId::Number(1), "shutdown", &()),
            r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#,
        ),
        (
            encode_request(&MessageId::Text("x".to_owned()), "m", &[1]),
            r#"{"jsonrpc":"2.0","id":"x","method":"m","params":[1]}"#,
        ),
        (
            encode_notification("n", &json!(["nul", null])),
            r#"{"jsonrpc":"2.0","method":"n","params":["nul",null]}"#,
        ),
        (
            encode_response(&MessageId::Number(1), Ok::<_, &ResponseError>(&Value::Null)),
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        ),
        (
            encode_response(&MessageId::Number(1), Err::<&(), _>(&error)),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#,
        ),
    ];
    for (encoded, body) in cases {
        let expected = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(String::from_utf8(encoded.unwrap().to_vec()).unwrap(), expected);
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(id in any::<i64>(), method in any::<String>(), params in json_value()) {
        let bytes = encode_request(&MessageId::Number(id), &method, &params).unwrap();
        let mut decoder = Decoder::new(FrameLimits::default());
        prop_assert_eq!(decoder.feed(&bytes), bytes.len());
        let frame = decoder.next_frame().unwrap();
        let Some(Frame::Body(body)) = frame else { return Err(TestCaseError::fail("no body")) };
        let Message::Request { id: read_id, method: read_method, params: read } = Message::parse(&body).unwrap()
        else { return Err(TestCaseError::fail("no request")) };
        prop_assert_eq!(read_id, MessageId::Number(id));
        prop_assert_eq!(read_method, method);
        let read: Value = read.map_or(Value::Null, |read| serde_json::from_str(read.get()).unwrap());
        prop_assert_eq!(read, params);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        text in r#"[{}\[\]":,a-z0-9 \\.-]{0,60}"#,
    ) {
        let outcomes = [Message::parse(&bytes), Message::parse(text.as_bytes())];
        prop_assert_eq!(outcomes.len(), 2);
    }
}
