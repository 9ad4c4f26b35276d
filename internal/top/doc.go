// Package top is the screen of weir top: a Model for bubbletea that polls one or several epps for their status
// documents (internal/status) and shows one of them.
//
// Update is pure: it changes the Model by messages. Only commands read the clock, the terminal or the network. Frame is
// a pure function of the Model, so golden frames in testdata show each screen. A frame has the height and at most the
// width of the terminal, and shows no control character of a client's name.
//
// If a replica does not answer, its last document stays on the screen, below a line with its age. If no replica has
// answered for Options.Patience, the program ends, and Err has the reason.
package top
