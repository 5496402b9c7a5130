// Package ndjson reads events from a text with one JSON object per line, which
// is the format of files for eventctl emit and for the demo:
//
//	{"canvas_id":"…","module":"WORKER","name":"order_placed","modifier":"_","value":{"order":1}}
//
// These five keys are required. The following are optional; of the first two only
// one may be given:
//
//	delay        a duration as Go writes it, such as "90s" or "1h30m"
//	delay_until  a time as in RFC 3339, such as "2030-01-31T09:00:00+01:00"
//	unique_key   a key that no other event of the canvas in the queue may have
//	unique_for   with unique_key: for how long the key is taken after the event's end
//	unique_mode  with unique_key: until_end, until_start or replace
//	max_wait     with the mode replace: for how long the event may be put off
//	ordering_key events of a canvas with the same key run one at a time and in order
//	priority     high, normal or low: which events go first while workers are behind
//	attributes   an object of small texts that go with the event, such as {"user": "ada"}
//
// # Guarantees
//
// A value is passed on byte for byte as it is in the text (I8): numbers, spaces,
// escapes and the order of keys do not change. What an emit would refuse is refused
// here, with the name of the file, the line and the field. Nothing is guessed:
// unknown keys, duplicate keys and other spellings of keys are errors. Blank lines
// are skipped, and the last line needs no newline.
//
// # Failures
//
// Reading stops at the first mistake. The lines before it have been passed on by
// then; a caller that must do all or nothing reads to the end before it acts.
// Memory is bounded by the longest line, whose length is limited.
package ndjson
