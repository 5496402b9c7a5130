// Package hostile attacks the built programs with requests and files that are made to be expensive, to break something, or to
// reach what they may not: each route with each identity and each body, many large requests at once, and the files that
// programs read.
//
// # What is checked
//
// No answer is an error of the server, but a 503 that says when to try again. Whoever has no valid credentials gets nothing
// but the public pages, and whoever has rights on one canvas sees and changes nothing of another. What is refused costs
// memory, answer and log in proportion to what was sent, at most (I21). Nothing depends on a time.
package hostile
