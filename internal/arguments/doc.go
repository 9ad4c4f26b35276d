// Package arguments says in words what is wrong with the value of a flag, as configurations do: the flag, the value that
// was found and what is allowed there.
package arguments
