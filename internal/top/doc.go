// Package top is the screen of weir top: a Model for bubbletea, which asks one or several epps for their status documents
// (internal/status) again and again, and shows one of them.
//
// Update is pure: it changes the Model by messages, and reads neither the clock, the terminal nor the network. Commands do
// that. Frame is a pure function of the Model, so that golden frames in testdata say how a screen looks. A frame has the height
// and at most the width of the terminal, and of a name that a client chose it shows no control character.
//
// A replica that does not answer keeps its last document on the screen, below a line that says since when. If no replica has
// answered for Options.Patience, the program ends, and Err has the reason.
package top
